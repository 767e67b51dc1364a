// A body as regions: the innermost loops of each reduction and of each group of stores, with what
// is computed there. Plans reckon with regions. Chooses nothing.
#pragma once

#include <vector>

#include "kernel/plan/analysis.h"

namespace anneal {

// How an access moves along an axis; every second element is loaded almost as neighbours are.
enum class Stride : uint8_t { None, Unit, Two, Other };

struct Region {
  std::vector<NodeRef> heads;  // reductions that share loops, or stores
  bool is_reduction = false;
  AxisSet own;     // axes of its loops that nothing outside runs over
  AxisSet domain;  // all axes it runs over
  // Computed in the innermost loop: what depends on an axis of its own, stores included.
  std::vector<NodeRef> nodes;
};

// Reductions first, each after those it needs. `groups` are the stores made together, `common` the
// axes that all of them run in parallel.
std::vector<Region> regions_of(Analysis& analysis, const std::vector<std::vector<NodeRef>>& groups,
                               const AxisSet& common);

inline bool is_access(NodeRef node) {
  return node->op == Op::Load || node->op == Op::Store || node->op == Op::StoreAdd;
}
// Of a load or store, along an axis.
Stride stride_of(Analysis& analysis, NodeRef access, size_t axis);

// How many times the innermost loop of the region runs.
double iterations(const Analysis& analysis, const AxisSet& axes);

}  // namespace anneal
