// anneal bench NAME: figures of the compiler itself, each beside its goal.
#pragma once

#include <string>

namespace anneal::cli {

struct BenchOptions {
  std::string name;
  bool json = false;
};

// False when something that must work did not; a missed goal is no failure.
bool bench(const BenchOptions& options);

}  // namespace anneal::cli
