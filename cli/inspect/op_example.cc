// Built from the op's row in ops.def: a new op that follows an old shape rule has its example.
#include "cli/inspect/op_example.h"

#include <array>

#include <anneal/grad.h>

#include "ir/build.h"
#include "transform/derivative.h"

namespace anneal::cli {
namespace {

using IntRow = std::initializer_list<int64_t>;

std::vector<NodeRef> sizes(IntRow values) {
  return static_dims(std::span(values.begin(), values.size()));
}
NodeRef place(std::string_view name, DType dtype, IntRow dims) {
  return make_buffer(name, 0, dtype, sizes(dims));
}
NodeRef over_axes(Op op, NodeRef source, IntRow axes) {
  return make_axes(op, source, std::span(axes.begin(), axes.size()));
}

// Floats where the op takes them: those have gradients.
DType example_dtype(Op op) {
  if (op == Op::Threefry) return DType::U32;
  const uint8_t accepts = info(op).accepts;
  return accepts & kFloatClass ? DType::F32 : accepts & kIntClass ? DType::I32 : DType::Bool;
}

NodeRef leaf(Op op) {
  switch (op) {
    case Op::Const: return make_const(DType::F32, 0.5, sizes({2, 3}));
    case Op::Iota: return make_iota(DType::I32, sizes({2, 3}), 1);
    default: return place("a", DType::F32, {2, 3});
  }
}

NodeRef elementwise(Op op, DType dtype) {
  constexpr std::array<std::string_view, 4> kNames{"a", "b", "c", "d"};
  std::vector<NodeRef> sources;
  for (size_t i = 0; i < info(op).sources; ++i) {
    const bool selector = info(op).type == TypeRule::Select && i == 0;
    sources.push_back(place(kNames[i], selector ? DType::Bool : dtype, {2, 3}));
  }
  if (op == Op::Cast) return make_cast(sources[0], DType::F16);
  if (op == Op::Bitcast) return make_bitcast(sources[0], DType::I32);
  return make(op, sources);
}

NodeRef like_first(Op op, NodeRef a) {
  if (info(op).arg == ArgKind::Axes) return over_axes(op, a, {1});
  if (op == Op::CustomGrad) {
    const Tensor value(a);
    return custom_gradient(value, {value}, [](const Tensor& g) { return Parts{g * 2}; }).node();
  }
  if (op == Op::Named) return make(op, {a}, Arg(current_graph().intern_symbol("hidden", 1, 0)));
  if (info(op).sources == 2) return make(op, {a, place("b", a->dtype, {2, 3})});
  return make(op, {a});
}

NodeRef build(Op op) {
  const OpInfo& row = info(op);
  if (row.sources == 0 && row.shape == ShapeRule::Tail) return leaf(op);
  const DType dtype = example_dtype(op);
  const NodeRef a = place("a", dtype, {2, 3});
  switch (row.shape) {
    case ShapeRule::Point: return make_variable("n", 1, 1024);
    case ShapeRule::Tail: return make_tail(op, a, sizes({3, 2}));
    case ShapeRule::Elementwise: return elementwise(op, dtype);
    case ShapeRule::Reduce: return over_axes(op, a, {1});
    case ShapeRule::Permute: return over_axes(op, a, {1, 0});
    case ShapeRule::Expand: return make_tail(op, place("a", dtype, {2, 1}), sizes({2, 3}));
    case ShapeRule::Pad: return make_tail(op, a, sizes({0, 0, 1, 2}));
    case ShapeRule::Shrink: return make_tail(op, a, sizes({0, 2, 1, 3}));
    case ShapeRule::First: return like_first(op, a);
    case ShapeRule::Gather: return make(op, {a, place("b", DType::I32, {2, 2})}, Arg(int64_t{1}));
    case ShapeRule::Scatter:
      return make(op, {a, place("b", DType::I32, {2, 2}), place("c", dtype, {2, 2})},
                  Arg(int64_t{1}));
  }
  throw InternalError("explain: no example for a shape rule");
}

}  // namespace

OpExample example_of(Op op) {
  const NodeRef node = build(op);
  OpExample example{Tensor(node), {}, {}};
  for (NodeRef source : node->tensors())
    if (is_float(source->dtype)) example.wanted.emplace_back(source);
  if (op == Op::CustomGrad) example.wanted.resize(1);  // the value and the input are the same
  const bool differentiable = gradient_rule(op) || op == Op::CustomGrad;
  if (!differentiable || !is_float(node->dtype) || example.wanted.empty()) return example;
  const Tensor g(make_buffer("g", 0, node->dtype, node->shape->dims()));
  example.gradients = grad(example.result, example.wanted, {.seed = g, .allow_unused = true});
  return example;
}

}  // namespace anneal::cli
