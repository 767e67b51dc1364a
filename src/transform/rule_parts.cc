#include "transform/rule_parts.h"

#include <algorithm>

#include "tensor/lift.h"

namespace anneal {
namespace {

std::vector<int64_t> inverse(std::span<const int64_t> permutation) {
  std::vector<int64_t> result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

Tensor indexed(Op op, std::initializer_list<Tensor> sources, NodeRef node) {
  std::vector<NodeRef> nodes;
  for (const Tensor& source : sources) nodes.push_back(node_of(source));
  return wrap(make(op, nodes, node->arg));
}

}  // namespace

Tensor float_part(const Tensor& part, const Tensor& like) {
  return is_float(like.dtype()) ? cast(part, like.dtype()) : none();
}

Tensor repeat_like(const Tensor& x, const Tensor& like) {
  return wrap(expand_node(node_of(x), node_of(like)->shape->dims()));
}

Tensor sum_like(const Tensor& x, const Tensor& like) {
  return wrap(unbroadcast(node_of(x), node_of(like)->shape->dims()));
}

Tensor reshape_like(const Tensor& x, const Tensor& like) {
  return wrap(reshape_node(node_of(x), node_of(like)->shape->dims()));
}

Tensor unpermute(const Tensor& x, NodeRef permute) {
  return wrap(permute_node(node_of(x), inverse(permute->axes())));
}

Tensor same_movement(const Tensor& x, NodeRef node) {
  std::vector<NodeRef> sources(node->sources().begin(), node->sources().end());
  sources[0] = node_of(x);
  return wrap(make(node->op, sources, node->arg));
}

Tensor same_reduction(const Tensor& x, NodeRef reduce) {
  return wrap(reduce_node(Op::ReduceSum, node_of(x), reduce->axes()));
}

// Cuts off what was padded: from `before` up to `before` plus the source's size.
Tensor unpad(const Tensor& x, NodeRef pad) {
  std::vector<NodeRef> pairs;
  for (size_t axis = 0; axis < pad->rank(); ++axis) {
    NodeRef before = pad->tail()[2 * axis];
    pairs.push_back(before);
    pairs.push_back(index_add(before, pad->source(0)->dim(axis)));
  }
  return wrap(shrink_node(node_of(x), pairs));
}

// Puts zeros where things were cut off.
Tensor unshrink(const Tensor& x, NodeRef shrink) {
  std::vector<NodeRef> pairs;
  for (size_t axis = 0; axis < shrink->rank(); ++axis) {
    pairs.push_back(shrink->tail()[2 * axis]);
    pairs.push_back(index_sub(shrink->source(0)->dim(axis), shrink->tail()[2 * axis + 1]));
  }
  return wrap(pad_node(node_of(x), pairs));
}

Tensor unflip(const Tensor& x, NodeRef flip) { return wrap(flip_node(node_of(x), flip->axes())); }

Tensor extreme_share(const Tensor& x, const Tensor& y, NodeRef reduce) {
  Tensor attained = cast(x == repeat_like(y, x), x.dtype());
  return attained / repeat_like(same_reduction(attained, reduce), x);
}

// With the reduced axes last and flat, element i of the square's row j is x_i, but 1 on the
// diagonal: the product of a row leaves out exactly one factor.
Tensor product_of_others(const Tensor& x, NodeRef reduce) {
  std::vector<int64_t> order;
  std::span<const int64_t> axes = reduce->axes();
  size_t rank = x.rank(), kept = rank - axes.size();
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
  order.insert(order.end(), axes.begin(), axes.end());
  Tensor moved = wrap(permute_node(node_of(x), order));
  Sizes moved_shape = moved.shape();
  Dim count = 1;
  for (size_t axis = kept; axis < rank; ++axis) count = count * moved_shape[axis];

  Sizes row(moved_shape.begin(), moved_shape.begin() + static_cast<std::ptrdiff_t>(kept)),
      square = row;
  row.insert(row.end(), {Dim(1), count});
  square.insert(square.end(), {count, count});
  Tensor factors = expand(reshape(moved, row), square);
  const std::vector<NodeRef> dims = nodes_of(Sizes{count, count});
  Tensor diagonal = wrap(make_iota(DType::I32, dims, 0)) == wrap(make_iota(DType::I32, dims, 1));
  Tensor others = prod(where(diagonal, 1, factors), -1);
  return wrap(permute_node(node_of(reshape(others, moved_shape)), inverse(order)));
}

Tensor gather_at(const Tensor& x, const Tensor& index, NodeRef node) {
  return indexed(Op::Gather, {x, index}, node);
}
Tensor scatter_add_at(const Tensor& x, const Tensor& index, const Tensor& values, NodeRef node) {
  return indexed(Op::ScatterAdd, {x, index, values}, node);
}
Tensor scatter_at(const Tensor& x, const Tensor& index, const Tensor& values, NodeRef node) {
  return indexed(Op::Scatter, {x, index, values}, node);
}

Tensor is_written(const Tensor& x, const Tensor& index, NodeRef node) {
  Tensor no = literal(DType::Bool, 0, x.shape()), yes = literal(DType::Bool, 1, index.shape());
  return scatter_at(no, index, yes, node);
}

// Each value writes its own position; who reads its own position back was last.
Tensor is_last_writer(const Tensor& x, const Tensor& index, NodeRef node) {
  Tensor position = wrap(make_iota(DType::I32, node_of(index)->shape->dims(), node->arg.axis));
  Tensor written = scatter_at(literal(DType::I32, 0, x.shape()), index, position, node);
  return gather_at(written, index, node) == position;
}

Tensor winner_share(const Tensor& larger, const Tensor& a, const Tensor& b) {
  return where(larger, literal_like(a, 1), where(a == b, literal_like(a, 0.5), literal_like(a, 0)));
}

}  // namespace anneal
