#include "kernel/plan.h"

#include <algorithm>

namespace anneal {

Planner::Planner(Analysis& analysis, const Capabilities& capabilities,
                 const std::vector<std::string>& disabled)
    : analysis_(analysis), capabilities_(capabilities), disabled_(disabled) {}

bool Planner::enabled(std::string_view name) const {
  return std::find(disabled_.begin(), disabled_.end(), name) == disabled_.end();
}

CellPlan Planner::plan_cell() const {
  CellPlan plan;
  const std::vector<NodeRef>& stores = analysis_.body().stores;
  // Axes that every store may run in parallel.
  std::vector<size_t> common;
  for (size_t axis = 0; axis < analysis_.axis_count(); ++axis) {
    bool everywhere = !stores.empty();
    for (NodeRef store : stores) {
      std::span<const NodeRef> parallel =
          Analysis::listed(store).first(static_cast<size_t>(store->arg.axis));
      everywhere &= std::any_of(parallel.begin(), parallel.end(), [&](NodeRef variable) {
        return analysis_.number(variable) == axis;
      });
    }
    if (everywhere) common.push_back(axis);
  }
  for (size_t axis : common) plan.grid.push_back({axis, 1, {}});
  for (NodeRef store : stores) {
    StorePlan group{{store}, {}};
    for (NodeRef variable : Analysis::listed(store)) {
      const size_t axis = analysis_.number(variable);
      if (std::find(common.begin(), common.end(), axis) == common.end())
        group.loops.push_back({axis, {}});
    }
    plan.stores.push_back(group);
  }
  return plan;
}

std::vector<AxisLoop> Planner::plan_reduction(const std::vector<NodeRef>& reductions,
                                              const AxisSet&, int) const {
  std::vector<AxisLoop> loops;
  for (NodeRef variable : Analysis::listed(reductions[0]))
    loops.push_back({analysis_.number(variable), {}});
  return loops;
}

}  // namespace anneal
