#include "schedule/graph/products.h"

#include "body/product.h"
#include "ir/node_map.h"
#include "ir/op.h"
#include "ir/post_order.h"
#include "schedule/cost.h"

namespace anneal {
namespace {

AxisSet all_axes(NodeRef node) {
  AxisSet all;
  for (size_t axis = 0; axis < node->rank(); ++axis) all.add(axis);
  return all;
}

// What a value is made of element by element, as far as its axes follow from theirs.
NodeRef part_of(NodeRef node, size_t i) {
  if (node->op == Op::Permute || node->op == Op::Cast) return i == 0 ? node->source(0) : nullptr;
  if (!is_elementwise(node->op)) return nullptr;
  for (NodeRef source : node->tensors())
    if (source->rank() == node->rank() && i-- == 0) return source;
  return nullptr;
}

// The axes of a node that it changes along, from those of its parts.
AxisSet changing_axes(NodeRef node, const NodeMap<AxisSet>& known) {
  auto of = [&](NodeRef part) {
    const AxisSet* axes = known.find(part);
    return axes ? *axes : all_axes(part);
  };
  AxisSet axes;
  if (node->op == Op::Const) return axes;
  if (node->op == Op::Expand) {
    for (size_t axis = 0; axis < node->rank(); ++axis)
      if (node->source(0)->dim(axis) == node->dim(axis)) axes.add(axis);
    return axes;
  }
  if (node->op == Op::Permute) {
    const AxisSet inner = of(node->source(0));
    for (size_t axis = 0; axis < node->rank(); ++axis)
      if (inner.contains(static_cast<size_t>(node->axes()[axis]))) axes.add(axis);
    return axes;
  }
  if (!part_of(node, 0)) return is_elementwise(node->op) ? axes : all_axes(node);
  for (size_t i = 0; NodeRef part = part_of(node, i); ++i) axes = axes | of(part);
  return axes;
}

// Those along which a value may differ from element to element.
AxisSet changing_axes(NodeRef root) {
  size_t looked_at = 0;
  NodeMap<AxisSet> known;
  for (NodeRef node : post_order(std::span(&root, 1), [&](NodeRef parent, size_t i) -> NodeRef {
         NodeRef part = part_of(parent, i);
         return part && ++looked_at <= kLargestFactor ? part : nullptr;
       }))
    known[node] = changing_axes(node, known);
  return *known.find(root);
}

}  // namespace

bool is_product(NodeRef node) {
  if (node->op != Op::ReduceSum) return false;
  NodeRef product = node->source(0);
  while (product->op == Op::Cast || product->op == Op::Reshape || product->op == Op::Permute)
    product = product->source(0);
  return product->op == Op::Mul &&
         factor_axes(changing_axes(product->source(0)), changing_axes(product->source(1)))
             .is_product();
}

}  // namespace anneal
