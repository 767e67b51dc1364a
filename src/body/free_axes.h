// Which axes each node of a body depends on. Looks at structure alone.
#pragma once

#include <span>
#include <vector>

#include "body/axis_set.h"
#include "body/kernel_body.h"
#include "ir/node_map.h"

namespace anneal {

// Which axes of a body are free in each of its nodes: those it depends on. A reduction's own axes
// are not free in it.
class FreeAxes {
 public:
  explicit FreeAxes(std::span<const Axis> axes);
  // What is in a tile depends on the tile's axes, though positions do not speak of them.
  explicit FreeAxes(const KernelBody& body);

  AxisSet of(NodeRef node);
  size_t count() const { return variables_.size(); }
  // The number of an axis; count() for other nodes.
  size_t number(NodeRef variable) const;
  NodeRef variable(size_t axis) const { return variables_[axis]; }

 private:
  std::vector<NodeRef> variables_;
  NodeMap<size_t> numbers_;
  NodeMap<AxisSet> free_;
  std::vector<NodeRef> tiles_;
  AxisSet tile_axes_;
};

}  // namespace anneal
