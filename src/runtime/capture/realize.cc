// From lazy tensors to values: what the public calls promise, whatever device computes. Results are
// kept as buffers; a result that equals a parameter shares its memory until the parameter changes.
#include <algorithm>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "base/traffic.h"
#include "ir/interpreter.h"
#include "ir/node_map.h"
#include "runtime/capture/assignments.h"
#include "runtime/execute/evaluator.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

std::vector<NodeRef> targets_of(std::span<const NodeRef> assigns) {
  std::vector<NodeRef> targets;
  for (NodeRef assign : assigns) targets.push_back(assign->source(0));
  return targets;
}

thread_local int64_t t_evaluations = 0;

NodeRef store(std::shared_ptr<Storage> storage) {
  NodeRef buffer = make_buffer("", new_buffer_slot(), storage->dtype, static_dims(storage->shape));
  current_graph().store(buffer, std::move(storage));
  return buffer;
}

// Memory that nothing will change: a buffer with contents that is not a parameter.
bool is_constant_memory(NodeRef node) {
  return node->op == Op::Buffer && node->arg.symbol->length == 0 && current_graph().stored(node);
}

std::vector<NodeRef> nodes_of(const std::vector<Tensor>& tensors) {
  std::vector<NodeRef> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(node_of(tensor));
  return nodes;
}

// What a call computes. Nodes of the current graph.
struct Work {
  std::vector<NodeRef> roots, assigns, targets;

  explicit Work(const std::vector<Tensor>& tensors)
      : roots(nodes_of(tensors)), assigns(assignments(roots)), targets(targets_of(assigns)) {}
};

// Between public calls no raw handles are held, so the graph may be tidied. Memory that results
// share with a parameter has to be copied before the parameter changes: where that is much, first
// see whether the results are still needed.
Work begin(const CallScope& call, const std::vector<Tensor>& tensors) {
  constexpr size_t kMuch = size_t{1} << 20;
  Graph& graph = current_graph();
  if (call.outermost()) graph.collect_if_worthwhile();
  Work work(tensors);
  if (!call.outermost() || graph.shared_bytes(work.targets) <= kMuch) return work;
  graph.collect();
  return Work(tensors);
}

// Computes the roots and stores what they assign. The answers are buffers.
std::vector<NodeRef> compute(const Work& work, const Bindings& bindings) {
  Graph& graph = current_graph();
  check_targets(work.assigns);
  const Contents contents(bindings);
  NodeMap<char> written;  // assignments that take effect, and their targets
  for (NodeRef assign : work.assigns) written[assign] = written[assign->source(0)] = 1;

  // What a root's value is the memory of, once the stores are done; null: it is computed.
  auto memory_of = [&](NodeRef root) -> NodeRef {
    if (root->op == Op::Assign) return written.contains(root) ? root->source(0) : nullptr;
    const bool kept = root->op == Op::Buffer && !contents.is_bound(root) && !written.contains(root);
    return kept && graph.stored(root) ? root : nullptr;
  };
  Request request{{}, work.assigns, &contents};
  for (NodeRef root : work.roots)
    if (!is_constant_memory(root) && !memory_of(root)) request.roots.push_back(root);
  if (!request.roots.empty() || !request.assigns.empty()) ++t_evaluations;
  graph.separate(work.targets);
  std::vector<std::shared_ptr<Storage>> values = current_evaluator().run(request);

  std::vector<NodeRef> results;
  auto value = values.begin();
  for (NodeRef root : work.roots) {
    NodeRef memory = memory_of(root);
    if (is_constant_memory(root))
      results.push_back(root);
    else
      results.push_back(store(memory ? graph.shared_storage(memory) : std::move(*value++)));
  }
  if (!work.assigns.empty()) graph.forget_results();
  return results;
}

}  // namespace

int64_t evaluations() { return t_evaluations; }

std::vector<Tensor> evaluate(const std::vector<Tensor>& tensors, const Bindings& bindings,
                             Location where) {
  CallScope call("evaluate", where);
  const Work work = begin(call, tensors);
  std::vector<Tensor> results;
  for (NodeRef result : compute(work, bindings)) results.push_back(wrap(result));
  return results;
}

const Tensor& Tensor::realize(Location where) const {
  CallScope call("realize", where);
  const Work work = begin(call, {*this});
  Graph& graph = current_graph();
  NodeRef node = work.roots[0];
  if (node->op == Op::Buffer && graph.stored(node)) return *this;
  NodeRef result = compute(work, {})[0];
  if (node->op == Op::Assign) result = node->source(0);
  // Expressions over it need not compute it again, and every handle on it reads what was computed
  // now, whatever is assigned later.
  if (work.assigns.empty()) graph.store(node, graph.shared_storage(result));
  graph.redirect_roots(node, result);
  return *this;
}

std::vector<std::byte> Tensor::read(DType as, const Bindings& bindings, Location where) const {
  CallScope call("to_vector", where);
  const Work work = begin(call, {*this});
  std::shared_ptr<Storage> storage = current_graph().shared_storage(compute(work, bindings)[0]);
  traffic().device_to_host += static_cast<int64_t>(storage->size());
  if (storage->dtype == as) {
    const std::span<const std::byte> bytes = storage->read();
    return {bytes.begin(), bytes.end()};
  }
  Value value = to_value(*storage);
  for (uint64_t& payload : value.payload)
    payload = anneal::cast(Scalar::from_bits(value.dtype, payload), as).bits();
  value.dtype = as;
  std::vector<std::byte> bytes(value.payload.size() * byte_size(as));
  write_elements(value, bytes.data());
  return bytes;
}

void Tensor::write(std::span<const std::byte> bytes, Location where) const {
  CallScope call("write", where);
  NodeRef node = node_of(*this);
  if (node->op != Op::Buffer || node->arg.symbol->length == 0 || !current_graph().stored(node))
    fail("only a parameter can be written to", "make it with parameter(name, initial)");
  current_graph().separate({&node, 1});
  Storage& storage = *current_graph().stored(node);
  if (bytes.size() != storage.size())
    fail(fmt::format("{} bytes do not fill \"{}\", which has {}", bytes.size(), name(),
                     storage.size()),
         fmt::format("it is {}", type_text(node)));
  std::ranges::copy(bytes, storage.overwrite().begin());
  traffic().host_to_device += static_cast<int64_t>(bytes.size());
  current_graph().forget_results();
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
void check_dtype_of_values(const Tensor& tensor, DType dtype, Location where) {
  CallScope call("write", where);
  if (tensor.dtype() != dtype)
    fail(fmt::format("\"{}\" is {}, the values are {}", tensor.name(), name(tensor.dtype()),
                     name(dtype)),
         "give values of its dtype");
}

void fail_not_one_element(const Tensor& tensor, size_t count, Location where) {
  CallScope call("item", where);
  fail(fmt::format("the tensor has {} elements, its shape is {}", count, to_text(tensor.shape())),
       "read them all with to_vector(), or reduce first");
}
}  // namespace detail

}  // namespace anneal
