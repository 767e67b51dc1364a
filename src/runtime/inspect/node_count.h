// How large a graph is, for people.
#pragma once

#include <cstddef>
#include <span>

#include "ir/node.h"

namespace anneal {

// How many nodes have a line in the text: all that the roots reach but index constants.
size_t count_nodes(std::span<const NodeRef> roots);

}  // namespace anneal
