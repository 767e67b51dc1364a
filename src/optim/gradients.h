// What clipping and the check for non-finite gradients share.
#pragma once

#include <vector>

#include <anneal/tensor.h>

namespace anneal::optim {

// Of all elements of all gradients.
Tensor square_sum(const std::vector<Tensor>& gradients);
// What gradients of this norm are multiplied with.
Tensor clip_factor(const Tensor& norm, double limit);

}  // namespace anneal::optim
