#include "tensor/named_gradient.h"

#include <charconv>

#include <fmt/format.h>

#include "tensor/lift.h"

namespace anneal {

GradientName gradient_name(NodeRef custom_grad) {
  std::string_view text = custom_grad->arg.symbol->text();
  GradientName result{text.substr(0, text.find(' ')), {}};
  text.remove_prefix(result.name.size());
  while (!text.empty()) {
    text.remove_prefix(1);  // the space
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) break;  // a name of the user's, with spaces in it
    result.numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return result;
}

Tensor with_named_gradient(const Tensor& value, std::string_view name,
                           const std::vector<int64_t>& numbers, const std::vector<Tensor>& inputs) {
  std::string symbol(name);
  for (int64_t number : numbers) symbol += fmt::format(" {}", number);
  std::vector<NodeRef> sources{node_of(value)};
  for (const Tensor& input : inputs) sources.push_back(node_of(input));
  return wrap(make(Op::CustomGrad, sources, Arg(current_graph().intern_symbol(symbol, 0, 0))));
}

}  // namespace anneal
