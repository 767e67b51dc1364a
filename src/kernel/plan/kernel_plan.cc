#include "kernel/plan/kernel_plan.h"

#include <algorithm>

#include <anneal/error.h>

namespace anneal {
const GridAxis& ProductPlan::grid_axis(size_t axis) const {
  return *std::find_if(grid.begin(), grid.end(),
                       [&](const GridAxis& each) { return each.axis == axis; });
}

std::vector<AxisLoop> ReductionPlan::loops(bool lanes_around, int accumulators) const {
  std::vector<AxisLoop> result = lanes_around ? within_lanes : alone;
  Tile& tile = result.back().tile;
  if (tile.neighbours > 1) return result;  // what one access brings
  const int most = lanes_around ? most_copies_within : most_copies_alone;
  tile.copies = std::clamp(kSumsInFlight / std::max(1, accumulators), 1, most);
  return result;
}

const ReductionPlan& KernelPlan::reduction(NodeRef node) const {
  for (const ReductionPlan& each : reductions)
    if (std::ranges::count(each.reductions, node) > 0) return each;
  throw InternalError("a reduction has no plan");
}

}  // namespace anneal
