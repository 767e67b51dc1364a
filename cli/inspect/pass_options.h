// --disable-pass, --dump-after and --time-passes: what a command asks of the compiler's passes.
#pragma once

#include <string>
#include <vector>

namespace anneal::cli {

struct PassOptions {
  std::vector<std::string> disabled;
  std::string dump_after;
  bool time = false;
};

// Checks the names and asks for it; dumps go to standard error.
void use_pass_options(const PassOptions& options);

// The table of times, on standard error, where it was asked for.
void write_pass_times(const PassOptions& options);

}  // namespace anneal::cli
