// The size of gradients as one number.
#include "optim/gradients.h"

#include <fmt/format.h>

#include <anneal/optim.h>

#include "tensor/lift.h"
#include "tensor/wide.h"

namespace anneal::optim {

Tensor square_sum(const std::vector<Tensor>& gradients) {
  Tensor total = literal(DType::F32, 0);
  for (const Tensor& gradient : gradients) total = total + sum(square(widen(gradient)));
  return total;
}

// PyTorch's: a norm that is not much above the limit comes out slightly below it.
Tensor clip_factor(const Tensor& norm, double limit) { return minimum(limit / (norm + 1e-6), 1); }

Tensor global_norm(const std::vector<Tensor>& gradients, Location where) {
  CallScope call("global_norm", where);
  return sqrt(square_sum(gradients));
}

std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double norm,
                                 Location where) {
  CallScope call("clip_by_norm", where);
  if (!(norm > 0)) fail(fmt::format("a norm of {}", norm), "give more than 0");
  Tensor factor = clip_factor(global_norm(gradients), norm);
  std::vector<Tensor> clipped;
  for (const Tensor& gradient : gradients)
    clipped.push_back(
        cast(widen(gradient) * cast(factor, wide_dtype(gradient.dtype())), gradient.dtype()));
  return clipped;
}

}  // namespace anneal::optim
