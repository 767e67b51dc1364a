// anneal kernels PROGRAM: a program as kernels, with the work each does, and why values are stored
// between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace anneal::cli {

struct KernelsOptions {
  std::string program;
  bool forward = false;  // only what the loss needs
  std::string device;    // empty: what programs run on anyway
  // One of named_targets() instead of a device, and what is wished of it.
  std::string target;
  Wishes wishes;
  std::string source;  // one of source_forms(): the kernels themselves instead of a table
  int kernel = -1;     // only this one
  bool plan = false;   // how they are planned, instead of a table
  bool time = false;   // runs them, and says how long each takes
  bool json = false;
};

std::vector<std::string_view> source_forms();

void kernels(const KernelsOptions& options);

}  // namespace anneal::cli
