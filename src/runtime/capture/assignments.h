// What a program changes: the assignments among its roots.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace anneal {

// The assignments among what the roots need: they take effect wherever they stand. Of several to
// one buffer the last one counts.
std::vector<NodeRef> assignments(std::span<const NodeRef> roots);

// An error when a target has no memory of its own.
void check_targets(std::span<const NodeRef> assigns);

}  // namespace anneal
