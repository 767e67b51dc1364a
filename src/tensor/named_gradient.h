// Gradients of compositions that have a better one than their parts give, found by name: a
// custom_grad node then says all there is to know, in text too.
#pragma once

#include <string_view>
#include <vector>

#include <anneal/tensor.h>

#include "ir/node.h"

namespace anneal {

// From the custom_grad node and the gradient of its value: one tensor an input.
using NamedGradient = std::vector<Tensor> (*)(NodeRef node, const Tensor& gradient);

// Null: there is none of that name, which is the part of the symbol before a space.
NamedGradient find_named_gradient(std::string_view symbol);

// The value, differentiated as the name says.
Tensor with_named_gradient(const Tensor& value, std::string_view symbol,
                           const std::vector<Tensor>& inputs);

// "conv groups (stride padding dilation).." and the same of a transposed one: of x and weight.
std::vector<Tensor> conv_gradient(NodeRef node, const Tensor& gradient);
std::vector<Tensor> conv_transpose_gradient(NodeRef node, const Tensor& gradient);
// Of the gradient of a convolution with respect to its weight: of x and the result's gradient.
std::vector<Tensor> conv_weights_gradient(NodeRef node, const Tensor& gradient);

// "gelu", "gelu_tanh", "softmax axis": of x.
std::vector<Tensor> gelu_gradient(NodeRef node, const Tensor& gradient);
std::vector<Tensor> gelu_tanh_gradient(NodeRef node, const Tensor& gradient);
std::vector<Tensor> softmax_gradient(NodeRef node, const Tensor& gradient);
// "counted_mean": of losses, and of which of them count.
std::vector<Tensor> counted_mean_gradient(NodeRef node, const Tensor& gradient);

}  // namespace anneal
