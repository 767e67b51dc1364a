#include "tensor/named_gradient.h"

#include "ir/build.h"

namespace anneal {

NamedGradient find_named_gradient(std::string_view symbol) {
  return symbol.substr(0, symbol.find(' ')) == "conv" ? conv_gradient : nullptr;
}

NodeRef with_named_gradient(NodeRef value, std::string_view symbol,
                            const std::vector<NodeRef>& inputs) {
  std::vector<NodeRef> sources{value};
  sources.insert(sources.end(), inputs.begin(), inputs.end());
  return make(Op::CustomGrad, sources, Arg(current_graph().intern_symbol(symbol, 0, 0)));
}

}  // namespace anneal
