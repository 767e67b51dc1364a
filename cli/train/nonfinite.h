// Where a step went wrong: the first tensor of a captured program that is not finite.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <anneal/tensor.h>

namespace anneal::cli {

// Evaluates the nodes of the program in order, with contents for its inputs by name. Names the
// first tensor with NaN or infinity: its shape, op and source line. What a mask made -inf on
// purpose does not count. Empty when all are finite.
std::string first_non_finite(const std::vector<Tensor>& program,
                             const std::vector<std::pair<std::string, Tensor>>& inputs,
                             Bindings bindings);

}  // namespace anneal::cli
