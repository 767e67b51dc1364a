#include "ir/build.h"

#include <algorithm>
#include <atomic>

#include "ir/index.h"

namespace anneal {
namespace {

std::vector<NodeRef> with_tail(NodeRef source, std::span<const NodeRef> tail) {
  std::vector<NodeRef> sources{source};
  sources.insert(sources.end(), tail.begin(), tail.end());
  return sources;
}

}  // namespace

NodeRef make(Op op, std::span<const NodeRef> sources, Arg arg) {
  return current_graph().make(op, DType::F32, sources, arg);
}

NodeRef make(Op op, std::initializer_list<NodeRef> sources, Arg arg) {
  return make(op, std::span<const NodeRef>(sources.begin(), sources.size()), arg);
}

NodeRef make_const(const Scalar& value, std::span<const NodeRef> dims) {
  return current_graph().make(Op::Const, value.dtype(), dims, Arg(value));
}

NodeRef make_const(DType dtype, double value, std::span<const NodeRef> dims) {
  return make_const(Scalar::of(dtype, value), dims);
}

NodeRef make_const_like(NodeRef like, double value) {
  return make_const(like->dtype, value, like->shape->dims());
}

NodeRef make_variable(std::string_view name, int64_t min, int64_t max) {
  Graph& graph = current_graph();
  return graph.make(Op::Variable, DType::Index, {}, Arg(graph.intern_symbol(name, min, max)));
}

NodeRef make_buffer(std::string_view name, int64_t slot, DType dtype,
                    std::span<const NodeRef> dims) {
  Graph& graph = current_graph();
  return graph.make(Op::Buffer, dtype, dims, Arg(graph.intern_symbol(name, slot, 0)));
}

NodeRef make_iota(DType dtype, std::span<const NodeRef> dims, int64_t axis) {
  return current_graph().make(Op::Iota, dtype, dims, Arg(axis));
}

NodeRef make_cast(NodeRef source, DType dtype) {
  if (source->dtype == dtype) return source;
  return current_graph().make(Op::Cast, dtype, {&source, 1});
}

NodeRef make_bitcast(NodeRef source, DType dtype) {
  if (source->dtype == dtype) return source;
  return current_graph().make(Op::Bitcast, dtype, {&source, 1});
}

NodeRef make_axes(Op op, NodeRef source, std::span<const int64_t> axes) {
  return make(op, {source}, Arg(current_graph().intern_axes(axes)));
}

NodeRef make_tail(Op op, NodeRef source, std::span<const NodeRef> tail) {
  return make(op, with_tail(source, tail));
}

NodeRef with_sources(NodeRef node, std::span<const NodeRef> sources) {
  if (std::equal(sources.begin(), sources.end(), node->sources().begin(), node->sources().end()))
    return node;
  return current_graph().make(node->op, node->dtype, sources, node->arg);
}

int64_t new_buffer_slot() {
  static std::atomic<int64_t> counter{0};
  return ++counter;
}

NodeRef make_named(NodeRef x, std::string_view name) {
  return make(Op::Named, {x}, Arg(current_graph().intern_symbol(name, new_buffer_slot(), 0)));
}

std::vector<NodeRef> static_dims(std::span<const int64_t> sizes) {
  std::vector<NodeRef> dims;
  dims.reserve(sizes.size());
  for (int64_t size : sizes) dims.push_back(index_const(size));
  return dims;
}

}  // namespace anneal
