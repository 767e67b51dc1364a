#include "body/free_axes.h"

#include <algorithm>

#include <fmt/format.h>

#include <anneal/error.h>

#include "ir/post_order.h"

namespace anneal {

FreeAxes::FreeAxes(std::span<const Axis> axes) {
  if (axes.size() > AxisSet::kMost)
    throw InternalError(
        fmt::format("a kernel has {} axes, at most {}", axes.size(), AxisSet::kMost));
  for (const Axis& axis : axes) {
    numbers_[axis.variable] = variables_.size();
    variables_.push_back(axis.variable);
  }
}

FreeAxes::FreeAxes(const KernelBody& body) : FreeAxes(body.axes) {
  tiles_ = body.tiles;
  for (NodeRef axis : body.tile_axes) tile_axes_.add(number(axis));
}

size_t FreeAxes::number(NodeRef variable) const {
  const size_t* known = numbers_.find(variable);
  return known ? *known : count();
}

AxisSet FreeAxes::of(NodeRef node) {
  if (const AxisSet* known = free_.find(node)) return *known;
  auto child = [&](NodeRef parent, size_t i) -> NodeRef {
    if (free_.contains(parent) || i >= parent->source_count) return nullptr;
    return parent->source(i);
  };
  for (NodeRef part : post_order(std::span(&node, 1), child)) {
    if (free_.contains(part)) continue;
    AxisSet axes;
    if (number(part) < count()) axes.add(number(part));
    for (NodeRef source : part->sources()) axes = axes | *free_.find(source);
    if (part->op == Op::Load && std::ranges::count(tiles_, part->source(0)))
      axes = axes | tile_axes_;
    if (is_reduce_over(part->op))
      for (NodeRef bound : part->sources().subspan(1)) axes.remove(number(bound));
    free_[part] = axes;
  }
  return *free_.find(node);
}

}  // namespace anneal
