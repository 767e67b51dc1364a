#include "kernel/plan.h"

#include <algorithm>

#include <anneal/error.h>

namespace anneal {

Planner::Planner(Analysis& analysis, const Capabilities& capabilities,
                 const std::vector<std::string>& disabled)
    : analysis_(analysis), capabilities_(capabilities), disabled_(disabled) {}

bool Planner::enabled(std::string_view name) const {
  return std::find(disabled_.begin(), disabled_.end(), name) == disabled_.end();
}

// Stores over the same axes are made together. A group that loads what another one stores (in
// place) comes before it, for loads see what was there before.
std::vector<std::vector<NodeRef>> Planner::groups_of_stores() const {
  std::vector<std::vector<NodeRef>> groups;
  auto ordered = [](NodeRef store) {
    return Analysis::listed(store).subspan(static_cast<size_t>(store->arg.axis));
  };
  for (NodeRef store : analysis_.body().stores) {
    auto alike = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return analysis_.listed_set(group[0]) == analysis_.listed_set(store) &&
             std::ranges::equal(ordered(group[0]), ordered(store));
    });
    if (alike == groups.end()) alike = groups.insert(groups.end(), std::vector<NodeRef>());
    alike->push_back(store);
  }
  std::vector<std::vector<NodeRef>> sorted;
  auto waits = [&](const std::vector<NodeRef>& group, const std::vector<NodeRef>& reader) {
    for (NodeRef node : topological_order(reader))
      for (NodeRef store : group)
        if (node->op == Op::Load && node->source(0) == store->source(0)) return true;
    return false;
  };
  while (!groups.empty()) {
    auto next = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return std::none_of(groups.begin(), groups.end(), [&](const auto& other) {
        return &other != &group && waits(group, other);
      });
    });
    if (next == groups.end()) throw InternalError("stores in place wait for each other");
    sorted.push_back(std::move(*next));
    groups.erase(next);
  }
  return sorted;
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
  for (const std::vector<NodeRef>& together : groups_of_stores()) {
    StorePlan group{together, {}};
    for (NodeRef variable : Analysis::listed(together[0])) {
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
