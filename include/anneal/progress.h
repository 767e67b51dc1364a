// How far a long compilation is, for whoever wants to show it: the library prints nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace anneal {

struct CompileProgress {
  std::string_view stage;       // "schedule", "lower", "compile", then "done"
  int64_t done = 0, total = 0;  // kernels, each different one once; while scheduling, none is known
};

// From now on, while a program compiles: from whichever thread does so, one call at a time. It must
// not evaluate tensors itself. An empty function ends that.
void on_compile_progress(std::function<void(const CompileProgress&)> function);

}  // namespace anneal
