#include "tensor/lift.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/checked.h"
#include "ir/infer.h"
#include "symbolic/bounds.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

bool is_one(NodeRef dim) { return is_static(dim) && static_value(dim) == 1; }

bool same_dims(std::span<const NodeRef> a, std::span<const NodeRef> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void check_thread(const detail::Root& root, const char* what) {
  if (!root.node()) fail(fmt::format("the {} is empty", what), "assign a value to it first");
  if (!root.graph())
    fail(
        fmt::format("the {} was made in a thread that has ended", what),
        "read it there with to_vector() before the thread ends, and make it here with from_data()");
  if (root.graph() != &current_graph())
    fail(fmt::format("the {} was made on another thread", what),
         "read it there with to_vector() and make it here with from_data()");
}

}  // namespace

NodeRef node_of(const Tensor& tensor) {
  check_thread(tensor, "tensor");
  return tensor.node();
}

NodeRef node_of(const Dim& dim) {
  check_thread(dim, "size");
  return dim.node();
}

std::vector<NodeRef> nodes_of(const Sizes& sizes) {
  std::vector<NodeRef> dims;
  dims.reserve(sizes.size());
  for (const Dim& size : sizes) dims.push_back(node_of(size));
  return dims;
}

NodeRef node_of(const Operand& operand) {
  switch (operand.kind()) {
    case Operand::Kind::Tensor: return node_of(operand.tensor());
    case Operand::Kind::Bool: return make_named(lift(operand, DType::Bool));
    case Operand::Kind::Int: return make_named(lift(operand, DType::I32));
    case Operand::Kind::Float: return make_named(lift(operand, DType::F32));
  }
  return nullptr;
}

DType meeting_dtype(std::span<const Operand* const> operands) {
  std::vector<DType> tensors;
  Operand::Kind widest = Operand::Kind::Bool;
  for (const Operand* operand : operands) {
    if (operand->kind() == Operand::Kind::Tensor)
      tensors.push_back(node_of(operand->tensor())->dtype);
    else
      widest = std::max(widest, operand->kind());
  }
  DType dtype = promote_all(tensors);
  if (widest == Operand::Kind::Float && !is_float(dtype)) return DType::F32;
  if (widest == Operand::Kind::Int && is_bool(dtype)) return DType::I32;
  return dtype;
}

Tensor literal(DType dtype, double value, const Sizes& sizes) {
  return wrap(make_const(dtype, value, nodes_of(sizes)));
}
Tensor literal_like(const Tensor& x, double value) {
  return wrap(make_const_like(node_of(x), value));
}
Tensor literal_arange(const Dim& stop, DType dtype) {
  return wrap(make_iota(dtype, nodes_of(Sizes{stop}), 0));
}
Tensor literal_dim(const Dim& dim, DType dtype) {
  NodeRef node = node_of(dim);
  return wrap(is_static(node) ? make_const(Scalar::of_int(dtype, static_value(node)))
                              : make_cast(node, dtype));
}
Tensor gradient_stopped(const Tensor& x) { return wrap(make(Op::StopGradient, {node_of(x)})); }

NodeRef lift(const Operand& operand, DType dtype) {
  if (operand.kind() == Operand::Kind::Tensor) return make_cast(node_of(operand.tensor()), dtype);
  return make_const(scalar_of(operand.number(), dtype));
}

bool fits(const Number& number, DType dtype) {
  if (!is_int(dtype)) return true;
  if (number.kind() == Number::Kind::Float) {
    // Powers of two, which are doubles where the greatest 64-bit integers are not.
    const double least = static_cast<double>(min_value(dtype));
    const double past = std::ldexp(1.0, static_cast<int>(std::bit_width(max_value(dtype))));
    const double whole = std::trunc(number.real());
    return whole >= least && whole < past;  // so NaN fits nowhere
  }
  if (number.above_i64()) return dtype == DType::U64;
  return number.integer() >= min_value(dtype) &&
         (number.integer() < 0 || static_cast<uint64_t>(number.integer()) <= max_value(dtype));
}

Scalar scalar_of(const Number& number, DType dtype) {
  if (!fits(number, dtype))
    fail(fmt::format("{} does not fit {}, which goes from {} to {}", number.text(), name(dtype),
                     min_value(dtype), max_value(dtype)),
         "cast the tensor to a dtype that holds the number, or choose such a dtype");
  if (number.kind() == Number::Kind::Float) return Scalar::of(dtype, number.real());
  const DType own = number.above_i64() ? DType::U64 : DType::I64;
  return cast(Scalar::of_int(own, number.integer()), dtype);
}

void check_storable(DType dtype) {
  if (static_cast<size_t>(dtype) >= kDTypeCount)
    fail(fmt::format("DType({}) is no dtype", static_cast<int>(dtype)),
         "use one that <anneal/dtype.h> names");
  if (dtype == DType::Index) fail("a tensor cannot hold symbolic sizes", "use i64");
}

void check_nonnegative(NodeRef amount, const std::string& what, const std::string& hint) {
  if (prove_nonnegative(amount)) return;
  if (bounds(amount).max < 0) fail(fmt::format("{} is negative", what), hint);
  fail(fmt::format("{} is not shown to be at least 0 for every binding", what),
       fmt::format("{}; give its variables bounds that show it", hint));
}

void check_sizes(std::span<const NodeRef> dims) {
  if (dims.size() > Limits::kRank)
    fail(fmt::format("the result has {} axes, at most {} are possible", dims.size(), Limits::kRank),
         "reshape it so that axes are joined");
  std::optional<int64_t> elements = 1;
  for (NodeRef dim : dims) {
    if (bounds(dim).max < 0)
      fail(fmt::format("size {} of {} is negative", to_text(dim), text_of(dims)),
           "sizes start at 0");
    if (is_static(dim) && elements && static_value(dim) != 0)
      elements = checked_mul(*elements, static_value(dim));
  }
  if (!elements)
    fail(fmt::format("{} has more elements than 64 bits can count", text_of(dims)),
         "take smaller sizes");
}

std::vector<NodeRef> broadcast_dims(std::span<const NodeRef> nodes) {
  size_t rank = 0;
  for (NodeRef node : nodes) rank = std::max(rank, node->rank());
  std::vector<NodeRef> dims(rank, index_const(1));
  for (NodeRef node : nodes) {
    size_t offset = rank - node->rank();
    for (size_t axis = 0; axis < node->rank(); ++axis) {
      NodeRef& common = dims[offset + axis];
      NodeRef size = node->dim(axis);
      if (is_one(size) || size == common) continue;
      if (is_one(common))
        common = size;
      else if (!prove_equal(size, common))
        fail(
            fmt::format("shapes do not broadcast: {} and {} (axis {}: {} and {})",
                        shape_text(nodes[0]), shape_text(nodes.back()), offset + axis,
                        to_text(common), to_text(size)),
            "sizes must be equal or 1, compared from the last axis; reshape or expand one of them");
    }
  }
  check_sizes(dims);
  return dims;
}

NodeRef broadcast_to(NodeRef node, std::span<const NodeRef> dims) {
  if (same_dims(node->shape->dims(), dims)) return node;
  if (node->is_const()) return make_const(node->scalar(), dims);
  // New axes go in front, as ones. A size that is equal but written differently takes the new form.
  std::vector<NodeRef> aligned(dims.size(), index_const(1));
  size_t offset = dims.size() - node->rank();
  for (size_t axis = 0; axis < node->rank(); ++axis)
    aligned[offset + axis] = is_one(node->dim(axis)) ? node->dim(axis) : dims[offset + axis];
  return expand_node(reshape_node(node, aligned), dims);
}

std::array<NodeRef, 2> meet(const Operand& a, const Operand& b, bool arithmetic) {
  std::array<const Operand*, 2> operands{&a, &b};
  DType dtype = meeting_dtype(operands);
  if (arithmetic && is_bool(dtype)) dtype = DType::I32;
  return meet_in(dtype, a, b);
}

std::array<NodeRef, 2> meet_in(DType dtype, const Operand& a, const Operand& b) {
  std::array<NodeRef, 2> nodes{lift(a, dtype), lift(b, dtype)};
  if (nodes[0]->shape == nodes[1]->shape) return nodes;
  std::vector<NodeRef> dims = broadcast_dims(nodes);
  return {broadcast_to(nodes[0], dims), broadcast_to(nodes[1], dims)};
}

NodeRef as_float(NodeRef node) {
  return is_float(node->dtype) ? node : make_cast(node, DType::F32);
}
NodeRef as_number(NodeRef node) {
  return is_bool(node->dtype) ? make_cast(node, DType::I32) : node;
}

size_t checked_axis(int64_t axis, size_t rank) {
  int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    fail(fmt::format("axis {} is out of range for rank {}", axis, rank),
         rank == 0 ? "a scalar has no axes"
                   : fmt::format("axes go from {} to {}", -signed_rank, signed_rank - 1));
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<int64_t> checked_axes(const Axes& axes, size_t rank) {
  std::vector<int64_t> result;
  if (axes.is_all()) {
    for (size_t axis = 0; axis < rank; ++axis) result.push_back(static_cast<int64_t>(axis));
    return result;
  }
  for (int64_t axis : axes.list()) result.push_back(static_cast<int64_t>(checked_axis(axis, rank)));
  std::sort(result.begin(), result.end());
  auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end())
    fail(fmt::format("axis {} is named twice", *twice), "name each axis once");
  return result;
}

NodeRef reshape_node(NodeRef node, std::span<const NodeRef> dims) {
  if (same_dims(node->shape->dims(), dims)) return node;
  if (node->is_const()) return make_const(node->scalar(), dims);
  return make_tail(Op::Reshape, node, dims);
}

NodeRef expand_node(NodeRef node, std::span<const NodeRef> dims) {
  if (same_dims(node->shape->dims(), dims)) return node;
  if (node->is_const()) return make_const(node->scalar(), dims);
  return make_tail(Op::Expand, node, dims);
}

NodeRef permute_node(NodeRef node, std::span<const int64_t> axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return node;
  return make_axes(Op::Permute, node, axes);
}

NodeRef pad_node(NodeRef node, std::span<const NodeRef> pairs) {
  bool nothing = std::all_of(pairs.begin(), pairs.end(),
                             [](NodeRef n) { return is_static(n) && static_value(n) == 0; });
  return nothing ? node : make_tail(Op::Pad, node, pairs);
}

NodeRef shrink_node(NodeRef node, std::span<const NodeRef> pairs) {
  bool nothing = true;
  for (size_t axis = 0; axis < node->rank(); ++axis)
    nothing = nothing && is_static(pairs[2 * axis]) && static_value(pairs[2 * axis]) == 0 &&
              pairs[2 * axis + 1] == node->dim(axis);
  return nothing ? node : make_tail(Op::Shrink, node, pairs);
}

NodeRef flip_node(NodeRef node, std::span<const int64_t> axes) {
  return axes.empty() ? node : make_axes(Op::Flip, node, axes);
}

NodeRef reduce_node(Op op, NodeRef node, std::span<const int64_t> axes) {
  return axes.empty() ? node : make_axes(op, node, axes);
}

NodeRef sum_of_products(NodeRef a, NodeRef b, std::span<const NodeRef> dims,
                        std::span<const int64_t> axes) {
  const DType dtype = a->dtype;
  if (is_narrow_float(dtype) && !axes.empty()) {
    a = make_cast(a, DType::F32);
    b = make_cast(b, DType::F32);
  }
  NodeRef product = make(Op::Mul, {broadcast_to(a, dims), broadcast_to(b, dims)});
  return make_cast(reduce_node(Op::ReduceSum, product, axes), dtype);
}

NodeRef unbroadcast(NodeRef node, std::span<const NodeRef> dims) {
  size_t offset = node->rank() - dims.size();
  std::vector<int64_t> repeated;
  for (size_t axis = 0; axis < node->rank(); ++axis)
    if (axis < offset || (is_one(dims[axis - offset]) && !is_one(node->dim(axis))))
      repeated.push_back(static_cast<int64_t>(axis));
  return reshape_node(reduce_node(Op::ReduceSum, node, repeated), dims);
}

std::string text_of(std::span<const NodeRef> dims) {
  return to_text(*current_graph().intern_shape(dims));
}

}  // namespace anneal
