// From lazy tensors to values. Programs run on the interpreter; results are kept as buffers.
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/tensor.h>

#include "ir/interpreter.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

// The contents a program sees: bound inputs first, then what buffers and earlier results hold.
class Contents {
 public:
  explicit Contents(const Bindings& bindings)
      : bound_(!bindings.sizes.empty() || !bindings.inputs.empty()) {
    for (const auto& [variable, value] : bindings.sizes) sizes_[node_of(variable)] = value;
    for (const auto& [place, value] : bindings.inputs) bind(node_of(place), value);
  }

  Environment environment() {
    return {
        .variable = [this](NodeRef node) { return size(node); },
        .buffer = [this](NodeRef node) { return buffer(node); },
        .known = [this](NodeRef node) { return find(node); },
    };
  }

 private:
  void bind(NodeRef place, const Tensor& value) {
    if (place->op != Op::Buffer)
      fail("only an input or a parameter can be bound", "bind the tensor that input() gave");
    if (value.dtype() != place->dtype)
      fail(fmt::format("input \"{}\" is {}, the value bound to it is {}", place->arg.symbol->text(),
                       name(place->dtype), name(value.dtype())),
           "cast the value");
    value.realize();
    Value contents = to_value(*current_graph().stored(node_of(value)));
    std::vector<int64_t> wanted;
    for (NodeRef dim : place->shape->dims())
      wanted.push_back(interpret_index(dim, [this](NodeRef variable) { return size(variable); }));
    if (contents.shape != wanted)
      fail(fmt::format("input \"{}\" is [{}] here, the value bound to it is [{}]",
                       place->arg.symbol->text(), fmt::join(wanted, ", "),
                       fmt::join(contents.shape, ", ")),
           "reshape the value, or bind other sizes");
    values_[place] = std::move(contents);
  }

  int64_t size(NodeRef variable) {
    auto entry = sizes_.find(variable);
    if (entry == sizes_.end())
      fail(fmt::format("variable {} has no value", variable->arg.symbol->text()),
           "bind it: evaluate(tensors, {.sizes = {{variable, 5}}})");
    return entry->second;
  }

  const Value* find(NodeRef node) {
    auto known = values_.find(node);
    if (known != values_.end()) return &known->second;
    // A result computed before was computed without these bindings.
    if (bound_ && node->op != Op::Buffer) return nullptr;
    const Storage* stored = current_graph().stored(node);
    return stored ? &(values_[node] = to_value(*stored)) : nullptr;
  }

  const Value* buffer(NodeRef node) {
    const Value* value = find(node);
    if (!value)
      fail(fmt::format("input \"{}\" has no contents", node->arg.symbol->text()),
           "bind it: evaluate(tensors, {.inputs = {{input, value}}})");
    return value;
  }

  bool bound_;
  std::unordered_map<NodeRef, int64_t> sizes_;
  std::unordered_map<NodeRef, Value> values_;
};

// The assignments among what the roots need: they take effect wherever they stand.
std::vector<NodeRef> assignments(std::span<const NodeRef> roots) {
  std::vector<NodeRef> found;
  for (NodeRef node : topological_order(roots))
    if (node->op == Op::Assign) found.push_back(node);
  return found;
}

void check_memory(std::span<const NodeRef> assigns) {
  for (NodeRef assign : assigns)
    if (!current_graph().stored(assign->source(0)))
      fail(fmt::format("\"{}\" has no memory to assign to", assign->source(0)->arg.symbol->text()),
           "make it with parameter(name, initial) instead of input()");
}

NodeRef store(const Value& value) {
  NodeRef buffer = make_buffer("", new_buffer_slot(), value.dtype, static_dims(value.shape));
  current_graph().store(buffer, std::make_shared<Storage>(to_storage(value)));
  return buffer;
}

// Memory that nothing will change: a buffer with contents that is not a parameter.
bool is_constant_memory(NodeRef node) {
  return node->op == Op::Buffer && node->arg.symbol->length == 0 && current_graph().stored(node);
}

// Between public calls no raw handles are held, so the graph may be tidied.
void tidy(const CallScope& call) {
  if (call.outermost()) current_graph().collect_if_worthwhile();
}

}  // namespace

std::vector<Tensor> evaluate(const std::vector<Tensor>& tensors, const Bindings& bindings,
                             Location where) {
  CallScope call("evaluate", where);
  tidy(call);
  Graph& graph = current_graph();
  std::vector<NodeRef> roots;
  for (const Tensor& tensor : tensors) roots.push_back(node_of(tensor));
  std::vector<NodeRef> assigns = assignments(roots);
  check_memory(assigns);
  roots.insert(roots.end(), assigns.begin(), assigns.end());
  Contents contents(bindings);
  std::vector<Value> values = interpret(roots, contents.environment());

  std::vector<Tensor> results;
  for (size_t i = 0; i < tensors.size(); ++i)
    results.push_back(wrap(is_constant_memory(roots[i]) ? roots[i] : store(values[i])));
  // All stores come after all reads.
  for (size_t i = 0; i < assigns.size(); ++i)
    *graph.stored(assigns[i]->source(0)) = to_storage(values[tensors.size() + i]);
  if (!assigns.empty()) graph.forget_results();
  return results;
}

const Tensor& Tensor::realize(Location where) const {
  CallScope call("realize", where);
  tidy(call);
  Graph& graph = current_graph();
  NodeRef node = node_of(*this);
  if (node->op == Op::Buffer && graph.stored(node)) return *this;
  NodeRef result = node_of(evaluate({*this}, {}, where)[0]);
  if (node->op == Op::Assign) result = node->source(0);
  // Expressions over it need not compute it again, and every handle on it reads what was computed
  // now, whatever is assigned later.
  if (assignments({&node, 1}).empty()) graph.store(node, graph.shared_storage(result));
  graph.redirect_roots(node, result);
  return *this;
}

std::vector<std::byte> Tensor::read(DType as, const Bindings& bindings, Location where) const {
  CallScope call("to_vector", where);
  tidy(call);
  Tensor value = evaluate({anneal::cast(Operand(*this, where), as)}, bindings, where)[0];
  return current_graph().stored(node_of(value))->bytes;
}

Tensor Tensor::assign(const Tensor& value, Location where) const {
  CallScope call("assign", where);
  NodeRef target = node_of(*this), source = node_of(value);
  if (target->op != Op::Buffer || target->arg.symbol->length == 0)
    fail("only a parameter can be assigned to", "make it with parameter(name, initial)");
  if (target->dtype != source->dtype || target->shape != source->shape)
    fail(fmt::format("\"{}\" is {}, the value is {}", name(), type_text(target), type_text(source)),
         "cast or reshape the value to fit");
  return wrap(make(Op::Assign, {target, source}));
}

namespace detail {
void fail_not_one_element(const Tensor& tensor, size_t count, Location where) {
  CallScope call("item", where);
  fail(fmt::format("the tensor has {} elements, its shape is {}", count, to_text(tensor.shape())),
       "read them all with to_vector(), or reduce first");
}
}  // namespace detail

}  // namespace anneal
