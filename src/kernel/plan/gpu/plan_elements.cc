// How a body runs on a device whose lanes are threads: a thread for each element, or squares of
// them for each group; plan_product.cc has products.
#include <algorithm>
#include <bit>

#include "kernel/plan/cost.h"
#include "kernel/plan/gpu/gpu_planner.h"

namespace anneal {
std::optional<WorkgroupElements> GpuPlanner::plan_elements() {
  if (!enabled("vectorise") || groups_.size() != 1 || !analysis_.body().tiles.empty())
    return std::nullopt;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return std::nullopt;
  WorkgroupElements plan;
  plan.stores = groups_[0];
  plan.axes = by_stride(common.list(), plan.stores[0], kNoAxis);
  const double elements = extent(plan.axes);
  const auto busy = static_cast<double>(capabilities_.parallel_threads);
  if (!analysis_.reductions().empty()) {
    // Lanes along the rows of a reduction, or along what it leaves.
    double along = 0, across = 0;
    for (const Region& region : regions_) {
      along += cost(region, best_own_axis(region));
      // Every thread makes all it needs by itself.
      const double again = region.is_reduction
                               ? elements / iterations(analysis_, region.domain.without(region.own))
                               : 1;
      across += plan.axes.empty() ? 1e300 : again * cost(region, plan.axes.back());
    }
    along *= std::max(1.0, busy / (elements * lanes_));
    across *= std::max(1.0, busy / elements);
    if (pins_.form == WorkgroupPins::Form::Any ? along < across
                                               : pins_.form == WorkgroupPins::Form::Rows) {
      groups_have_rows_ = std::ranges::all_of(analysis_.reductions(), [&](NodeRef reduction) {
        return analysis_.free(reduction) == common;
      });
      return std::nullopt;
    }
  }
  if (pins_.form == WorkgroupPins::Form::Rows) return std::nullopt;
  plan.threads = static_cast<int>(
      std::min<uint64_t>(static_cast<uint64_t>(lanes_),
                         std::bit_ceil(static_cast<uint64_t>(std::max(1.0, elements)))));
  if (!enabled("unroll") || plan.axes.empty()) return plan;
  const bool whole = analysis_.size_multiple(plan.axes.back()) % kElementsOfAccess == 0;
  // A thread that stores whole words of narrow elements need not share them with others.
  const bool narrow = most_copies(nodes_of_all_regions()) >= kElementsOfAccess &&
                      std::ranges::any_of(plan.stores, [](NodeRef store) {
                        return byte_size(store->source(3)->dtype) < 4;
                      });
  const bool many = analysis_.reductions().empty() && elements >= kElementsOfAccess * busy;
  if (whole && (narrow || many)) plan.neighbours = kElementsOfAccess;
  if (pins_.neighbours > 0) plan.neighbours = whole ? pins_.neighbours : 1;
  if (pins_.copies > 0) plan.copies = pins_.copies;
  return plan;
}

std::optional<TransposeTile> GpuPlanner::plan_transpose() {
  const bool simple = enabled("stage") && enabled("vectorise") && capabilities_.stage_products &&
                      groups_.size() == 1 && analysis_.body().tiles.empty() &&
                      analysis_.reductions().empty();
  if (!simple) return std::nullopt;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return std::nullopt;
  const std::vector<size_t> axes = by_stride(common.list(), groups_[0][0], kNoAxis);
  if (axes.size() < 2 || extent(axes) < kFewestTransposed) return std::nullopt;
  TransposeTile plan{groups_[0], {}, axes.back(), kNoAxis, {}};
  for (NodeRef node : topological_order(plan.stores)) {
    // Elements narrower than a word are stored by whole words instead.
    const bool suits =
        node->op != Op::Store || (byte_size(node->source(3)->dtype) >= 4 &&
                                  stride_of(analysis_, node, plan.along) == Stride::Unit);
    if (!suits) return std::nullopt;
    if (node->op != Op::Load || stride_of(analysis_, node, plan.along) != Stride::Other) continue;
    for (size_t axis : axes) {
      if (stride_of(analysis_, node, axis) != Stride::Unit) continue;
      if (plan.across != kNoAxis && plan.across != axis) return std::nullopt;
      plan.across = axis;
      plan.turned.push_back(node);
      break;
    }
  }
  const auto side = static_cast<double>(TransposeTile::kSide);
  const int64_t bytes = int64_t{4} * TransposeTile::kSide * (TransposeTile::kSide + 1) *
                        static_cast<int64_t>(plan.turned.size());
  if (plan.turned.empty() || bytes > capabilities_.fast_memory_bytes / 2 ||
      TransposeTile::kThreads > capabilities_.most_workgroup_threads ||
      extent({{plan.along}}) < side / 2 || extent({{plan.across}}) < side / 2)
    return std::nullopt;
  for (size_t axis : axes)
    if (axis != plan.along && axis != plan.across) plan.others.push_back(axis);
  return plan;
}

}  // namespace anneal
