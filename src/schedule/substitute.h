// Other nodes in the place of some, in everything that is made of them. Index expressions come back
// in normal form.
#pragma once

#include <span>
#include <vector>

#include "ir/node_map.h"

namespace anneal {

// Within the current graph.
std::vector<NodeRef> substitute(std::span<const NodeRef> roots, const NodeMap<NodeRef>& by);

}  // namespace anneal
