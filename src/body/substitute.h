// Other nodes in the place of some, in everything that is made of them. Index expressions come back
// in normal form.
#pragma once

#include <span>
#include <vector>

#include "ir/node_map.h"

namespace anneal {

// Within the current graph.
// The same op over other sources.
NodeRef rebuilt(NodeRef node, std::span<const NodeRef> sources);

std::vector<NodeRef> substitute(std::span<const NodeRef> roots, const NodeMap<NodeRef>& by);

}  // namespace anneal
