// Programs of many operations, as loops over tensors make them: to see that compile time is linear
// in the program. Inputs have no memory: a program is structure.
#pragma once

#include <string_view>
#include <vector>

#include <anneal/tensor.h>

namespace anneal::models {

struct LongProgram {
  std::string_view name;
  int64_t steps;  // of the benchmark
  std::vector<Tensor> (*build)(int64_t steps);
};
const std::vector<LongProgram>& long_programs();

}  // namespace anneal::models
