// Random tensor programs at node level: movement chains, reductions of reductions, products,
// indexed access, random bits, casts among all dtypes, several outputs and assignments, with sizes
// that are 0, 1, odd, large or symbolic.
// Must not evaluate them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace anneal {

struct RandomGraphOptions {
  int steps = 44;
  // Values stay moderate and decisions rest on exact values (value_info.h), so that every right way
  // to compute gives nearly the same. Otherwise anything goes.
  bool tame = true;
  bool symbolic = true;         // sizes may be Variables
  bool assigns = true;          // roots may store into buffers
  bool f64 = true;              // f32 in its place otherwise
  int64_t max_elements = 3000;  // of a node, at the largest sizes
};

// The roots of a program in the current graph; Assign nodes are roots themselves. The contents of
// buffers follow from their names (value_info.h).
std::vector<NodeRef> random_graph(uint64_t seed, const RandomGraphOptions& options = {});

// The longest way from a root to a leaf, in ops that compute or move something.
int depth(std::span<const NodeRef> roots);

}  // namespace anneal
