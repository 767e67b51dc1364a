// How a body with tiles runs: a cell is a few rows, which are the lanes of all it does. Rows then
// need no sums across lanes, and what all rows share is read once for them.
#include <algorithm>

#include "kernel/plan/body_planner.h"
#include "kernel/plan/cost.h"

namespace anneal {
CellPlan BodyPlanner::plan_tiles() {
  const KernelBody& body = analysis_.body();
  CellPlan plan;
  const bool vectors = enabled("vectorise"), unrolled = enabled("unroll");
  for (NodeRef variable : body.tile_axes) plan.grid.push_back({analysis_.number(variable), 1, {}});
  GridAxis& rows = plan.grid.back();
  if (vectors) rows.tile.lanes = std::max(1, capabilities_.vector_bytes / 4);
  if (vectors) choose_row_lanes(rows);
  const int64_t multiple = analysis_.size_multiple(rows.axis);
  if (unrolled && multiple % (kRowVectors * rows.tile.lanes) == 0) rows.tile.copies = kRowVectors;
  rows.block = rows.tile.elements();

  for (NodeRef store : body.stores) {
    StorePlan group{{store}, {}};
    for (NodeRef variable : Analysis::listed(store).subspan(body.tile_axes.size()))
      if (std::ranges::count(body.block_axes, variable))
        group.block_axis = analysis_.number(variable);
      else
        group.loops.push_back({analysis_.number(variable), {}});
    if (!group.loops.empty() && unrolled) {
      AxisLoop& inner = group.loops.back();
      bool sums = false;
      const std::vector<NodeRef> nodes = topological_order({&store, 1});
      for (NodeRef node : nodes)
        sums = sums || (is_reduce_over(node->op) && analysis_.free(node).contains(inner.axis));
      inner.tile.copies = std::min(sums ? kSumCopies : kPlainCopies, most_copies(nodes.size()));
      // Rows that are brought into a tile are read as they lie, and turned.
      NodeRef value = store->source(3);
      const bool turned = has_vectors() && value->op == Op::Load && rows.tile.lanes > 1 &&
                          analysis_.size_multiple(inner.axis) % rows.tile.lanes == 0 &&
                          stride_of(analysis_, value, inner.axis) == Stride::Unit &&
                          stride_of(analysis_, value, rows.axis) == Stride::Other;
      if (turned) inner.tile.copies = rows.tile.lanes;
    }
    plan.stores.push_back(group);
  }
  return plan;
}

}  // namespace anneal
