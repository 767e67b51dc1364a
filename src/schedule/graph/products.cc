#include "schedule/graph/products.h"

#include <vector>

#include "ir/op.h"

namespace anneal {
namespace {

// Axes along which a value is the same by construction.
std::vector<bool> broadcast_axes(NodeRef node) {
  std::vector<bool> same(node->rank(), false);
  if (node->op == Op::Expand) {
    for (size_t axis = 0; axis < node->rank(); ++axis)
      same[axis] = node->source(0)->dim(axis) != node->dim(axis);
  } else if (node->op == Op::Permute) {
    std::vector<bool> inner = broadcast_axes(node->source(0));
    for (size_t axis = 0; axis < node->rank(); ++axis)
      same[axis] = inner[static_cast<size_t>(node->axes()[axis])];
  } else if (node->op == Op::Cast || node->op == Op::Pad || node->op == Op::Shrink) {
    if (node->op == Op::Cast) return broadcast_axes(node->source(0));
  } else if (node->op == Op::Const) {
    same.assign(node->rank(), true);
  } else if (is_elementwise(node->op)) {
    same.assign(node->rank(), true);
    for (NodeRef source : node->tensors()) {
      if (source->rank() != node->rank()) continue;
      std::vector<bool> inner = broadcast_axes(source);
      for (size_t axis = 0; axis < node->rank(); ++axis) same[axis] = same[axis] && inner[axis];
    }
  }
  return same;
}

}  // namespace

bool is_product(NodeRef node) {
  if (node->op != Op::ReduceSum) return false;
  NodeRef product = node->source(0);
  while (product->op == Op::Cast || product->op == Op::Reshape || product->op == Op::Permute)
    product = product->source(0);
  if (product->op != Op::Mul) return false;
  std::vector<bool> left = broadcast_axes(product->source(0)),
                    right = broadcast_axes(product->source(1));
  bool only_left = false, only_right = false;
  for (size_t axis = 0; axis < left.size(); ++axis) {
    only_left = only_left || (right[axis] && !left[axis]);
    only_right = only_right || (left[axis] && !right[axis]);
  }
  return only_left && only_right;
}

}  // namespace anneal
