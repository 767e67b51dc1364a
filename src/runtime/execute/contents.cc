#include "runtime/execute/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/interpreter.h"
#include "tensor/lift.h"

namespace anneal {

Contents::Contents(const Bindings& bindings)
    : bound_(!bindings.sizes.empty() || !bindings.inputs.empty()) {
  for (const auto& [variable, value] : bindings.sizes) sizes_[node_of(variable)] = value;
  for (const auto& [place, value] : bindings.inputs) bind(node_of(place), value);
}

void Contents::bind(NodeRef place, const Tensor& value) {
  if (place->op != Op::Buffer)
    fail("only an input or a parameter can be bound", "bind the tensor that input() gave");
  if (value.dtype() != place->dtype)
    fail(fmt::format("input \"{}\" is {}, the value bound to it is {}", place->arg.symbol->text(),
                     name(place->dtype), name(value.dtype())),
         "cast the value");
  value.realize();
  std::shared_ptr<Storage> contents = current_graph().shared_storage(node_of(value));
  std::vector<int64_t> wanted;
  for (NodeRef dim : place->shape->dims())
    wanted.push_back(interpret_index(dim, [this](NodeRef variable) { return size(variable); }));
  if (contents->shape != wanted)
    fail(fmt::format("input \"{}\" is [{}] here, the value bound to it is [{}]",
                     place->arg.symbol->text(), fmt::join(wanted, ", "),
                     fmt::join(contents->shape, ", ")),
         "reshape the value, or bind other sizes");
  inputs_[place] = std::move(contents);
}

int64_t Contents::size(NodeRef variable) const {
  const Symbol& symbol = *variable->arg.symbol;
  auto entry = sizes_.find(variable);
  if (entry == sizes_.end())
    fail(fmt::format("variable {} has no value", symbol.text()),
         "bind it: evaluate(tensors, {.sizes = {{variable, 5}}})");
  if (entry->second < symbol.first || entry->second > symbol.second)
    fail(fmt::format("variable {} is {}, its bounds are {} and {}", symbol.text(), entry->second,
                     symbol.first, symbol.second),
         "bind a size within the bounds, or make the Variable with wider ones");
  return entry->second;
}

std::shared_ptr<Storage> Contents::find(NodeRef node) const {
  auto input = inputs_.find(node);
  if (input != inputs_.end()) return input->second;
  // A result computed before was computed without these bindings.
  if (bound_ && node->op != Op::Buffer) return nullptr;
  return current_graph().shared_storage(node);
}

std::shared_ptr<Storage> Contents::buffer(NodeRef node) const {
  std::shared_ptr<Storage> storage = find(node);
  if (!storage)
    fail(fmt::format("input \"{}\" has no contents", node->arg.symbol->text()),
         "bind it: evaluate(tensors, {.inputs = {{input, value}}})");
  return storage;
}

}  // namespace anneal
