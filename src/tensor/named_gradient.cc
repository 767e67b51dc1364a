#include "tensor/named_gradient.h"

#include "tensor/lift.h"

namespace anneal {

NamedGradient find_named_gradient(std::string_view symbol) {
  const std::string_view name = symbol.substr(0, symbol.find(' '));
  if (name == "conv") return conv_gradient;
  if (name == "conv_transpose") return conv_transpose_gradient;
  if (name == "conv_weights") return conv_weights_gradient;
  if (name == "gelu") return gelu_gradient;
  if (name == "gelu_tanh") return gelu_tanh_gradient;
  if (name == "softmax") return softmax_gradient;
  if (name == "counted_mean") return counted_mean_gradient;
  return nullptr;
}

Tensor with_named_gradient(const Tensor& value, std::string_view symbol,
                           const std::vector<Tensor>& inputs) {
  std::vector<NodeRef> sources{node_of(value)};
  for (const Tensor& input : inputs) sources.push_back(node_of(input));
  return wrap(make(Op::CustomGrad, sources, Arg(current_graph().intern_symbol(symbol, 0, 0))));
}

}  // namespace anneal
