// The smallest real use of each op, for `anneal explain`.
#pragma once

#include <vector>

#include <anneal/tensor.h>

#include "ir/op.h"

namespace anneal::cli {

struct OpExample {
  Tensor result;               // the op itself
  std::vector<Tensor> wanted;  // its float inputs
  // Of `wanted`, for the gradient "g" of the result; none where no gradient is defined.
  std::vector<Tensor> gradients;
};

OpExample example_of(Op op);

}  // namespace anneal::cli
