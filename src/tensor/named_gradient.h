// Marks values whose gradient is better than what their parts give: a custom_grad node that carries
// the name of a row of transform/grad_rules.cc and the row's numbers, in text too. Below are the
// compound expressions of those rows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <anneal/tensor.h>

#include "ir/node.h"

namespace anneal {

// The name of a row and its numbers, which are never negative: "softmax 1" as text.
struct GradientName {
  std::string_view name;
  std::vector<int64_t> numbers;
};
GradientName gradient_name(NodeRef custom_grad);

// The value, differentiated as the row says.
Tensor with_named_gradient(const Tensor& value, std::string_view name,
                           const std::vector<int64_t>& numbers, const std::vector<Tensor>& inputs);

// ---- Parts of rows

// The slope of gelu and of its approximation.
Tensor gelu_slope(const Tensor& x);
Tensor gelu_tanh_slope(const Tensor& x);
// What each loss has of the mean of those that count.
Tensor counted_share(const Tensor& counts, DType dtype);

// A convolution by its numbers: groups, then stride, padding and dilation of every spatial axis;
// one more where Winograd's way must not be gone. What a rule makes is marked again where that is a
// choice (schedule/graph/conv_rules.h).
using ConvNumbers = std::vector<int64_t>;
// Of x with a weight, without a bias.
Tensor conv_forward(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight);
// What y, the gradient of the result, gives to x and to the weight.
Tensor conv_adjoint(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight,
                    const Tensor& y);
Tensor conv_weight_gradient(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight,
                            const Tensor& y);
// The same of a transposed one.
Tensor conv_transpose_adjoint(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight,
                              const Tensor& y);
Tensor conv_transpose_weight_gradient(const ConvNumbers& numbers, const Tensor& x,
                                      const Tensor& weight, const Tensor& y);

}  // namespace anneal
