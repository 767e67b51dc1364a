// anneal bench NAME: figures of ours beside those of peers measured in the same run.
#pragma once

#include <string>
#include <vector>

namespace anneal::cli {

struct BenchOptions {
  std::string name;
  std::vector<int> threads;  // empty: one, and on a CPU as many as there are cores
  std::string device;        // empty: what programs run on anyway
  std::string only;          // cases whose name contains this
  double seconds = 0.5;      // to measure one side of a row
  bool json = false;
};

std::vector<std::string_view> bench_names();

// False when something that must work did not; a missed goal is no failure.
bool bench(const BenchOptions& options);

}  // namespace anneal::cli
