#include "kernel/plan/gpu/gpu_planner.h"

#include <algorithm>
#include <bit>

#include "kernel/plan/cost.h"

namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

GpuPlanner::GpuPlanner(Analysis& analysis, const Capabilities& capabilities,
                       const std::vector<std::string>& disabled)
    : BodyPlanner(analysis, capabilities, disabled) {
  if (enabled("vectorise")) most_lanes_ = capabilities_.workgroup_threads;
}

bool GpuPlanner::may_be(WorkgroupPins::Form form) const {
  return pins_.form == WorkgroupPins::Form::Any || pins_.form == form;
}

KernelPlan::Kind GpuPlanner::choose(bool row_lanes) {
  using Form = WorkgroupPins::Form;
  if (may_be(Form::Product))
    if (auto product = plan_workgroup_product()) return *std::move(product);
  if (may_be(Form::Transpose))
    if (auto transpose = plan_transpose()) return *std::move(transpose);
  if (may_be(Form::Elements) || may_be(Form::Rows))
    if (auto elements = plan_elements()) return *std::move(elements);
  return row_lanes ? plan_tiles() : plan_cell();
}

double GpuPlanner::scattered_access() const { return kScatteredThread; }

int GpuPlanner::sums_worthwhile(const Region&) const { return kSumsInFlight; }

// Copies of so many nodes that pay. Threads share little of what they compute: long code that is
// repeated fills their registers and the time of the GPU's compiler.
int GpuPlanner::most_copies(size_t nodes) const {
  return std::max(1, static_cast<int>(kMostNodesOfCopies / std::max<size_t>(1, nodes)));
}

// Threads take four elements at once, where that is how many they have and rows are made of fours.
void GpuPlanner::vectorize_accesses(const Region& region, size_t axis, Tile& tile) const {
  const int most = most_copies(region.nodes.size());
  if (tile.lanes == 1 || lanes_ == 1) return;
  // Long rows that are kept are read faster one by one.
  if (!analysis_.body().tiles.empty() && lanes_ == capabilities_.workgroup_threads) return;
  if (most < kElementsOfAccess) return;
  if (analysis_.size_multiple(axis) % kElementsOfAccess != 0) return;
  if (analysis_.expected_size(axis) < int64_t{kElementsOfAccess} * tile.lanes) return;
  const int pinned = pins_.most_accesses > 0 ? pins_.most_accesses : most;
  if (pinned < kElementsOfAccess) return;
  tile.neighbours = kElementsOfAccess;
  const bool twice = analysis_.expected_size(axis) >= int64_t{2 * kElementsOfAccess} * tile.lanes;
  tile.copies = twice && std::min(most, pinned) >= 2 * kElementsOfAccess ? 2 * kElementsOfAccess
                                                                         : kElementsOfAccess;
}

// Groups are many, and do little each; but no two make the same reductions.
void GpuPlanner::choose_blocks(size_t, CellPlan& plan) {
  AxisSet rows;
  for (NodeRef reduction : analysis_.reductions()) rows = rows | analysis_.free(reduction);
  for (GridAxis& each : plan.grid) {
    const bool shared = !rows.empty() && !rows.contains(each.axis);
    const int64_t size = shared ? std::max<int64_t>(1, analysis_.expected_size(each.axis)) : 1;
    each.block = ceil_div(size, each.tile.elements()) * each.tile.elements();
  }
}

// Of a group that has a row: a few elements for each, which it keeps in registers, and the fewer
// threads there are, the less they wait for each other. But of few rows all threads are wanted.
int GpuPlanner::lanes_along_rows(size_t vector_axis) {
  if (pins_.threads > 0) return lanes_;
  double rows = 1;
  int64_t longest = 1;
  for (size_t axis : common_axes().list())
    if (axis == vector_axis)
      longest = analysis_.expected_size(axis);
    else
      rows *= static_cast<double>(analysis_.expected_size(axis));
  for (const Region& region : regions_)
    if (const size_t axis = best_own_axis(region); axis != kNoAxis)
      longest = std::max(longest, analysis_.expected_size(axis));
  const double busy = kBusyThreads * static_cast<double>(capabilities_.parallel_threads);
  int threads = std::min(capabilities_.subgroup_threads, lanes_);
  while (threads < lanes_ && (threads * kElementsOfThread < longest || threads * rows < busy))
    threads *= 2;
  return threads;
}

void GpuPlanner::choose_row_lanes(GridAxis& rows) {
  const auto count =
      static_cast<uint64_t>(std::max<int64_t>(1, analysis_.expected_size(rows.axis)));
  if (pins_.threads > 0) rows.tile.lanes = pins_.threads;
  rows.tile.lanes = static_cast<int>(
      std::clamp<uint64_t>(std::bit_ceil(count), 2, static_cast<uint64_t>(rows.tile.lanes)));
  lanes_ = rows.tile.lanes;  // of sums that rows share, too: a group has one number of threads
}

KernelPlan GpuPlanner::make(bool row_lanes, const WorkgroupPins& pins) {
  pins_ = pins;
  return BodyPlanner::make(row_lanes, pins.threads > 0 ? pins.threads : most_lanes_);
}

}  // namespace anneal
