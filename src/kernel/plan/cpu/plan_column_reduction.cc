// Sums down long columns. A strip of columns at a time would take a small piece of every row, and
// memory only streams along rows; so whole rows are added to sums that lie in memory of the cell.
#include <algorithm>

#include "kernel/plan/cost.h"
#include "kernel/plan/cpu/cpu_planner.h"

namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::optional<ProductPlan> CpuPlanner::plan_column_reduction() {
  const Region* region = enabled("tile") && enabled("unroll") ? heaviest_sum() : nullptr;
  if (!region || region->heads.size() > kMostColumnSums) return std::nullopt;
  const AxisSet common = common_axes();
  // Along any other axis the same sums would be made again.
  if (region->domain.without(region->own) != common) return std::nullopt;
  const size_t columns = choose_vector_axis(common);
  if (columns == kNoAxis) return std::nullopt;
  double bytes = 0;
  NodeRef longest = nullptr;  // the load that all memory traffic is for
  for (NodeRef node : region->nodes) {
    if (node->op != Op::Load || !analysis_.free(node).contains(columns)) continue;
    if (stride_of(analysis_, node, columns) != Stride::Unit) return std::nullopt;
    bytes +=
        iterations(analysis_, analysis_.free(node)) * static_cast<double>(byte_size(node->dtype));
    if (analysis_.free(node->source(1)).contains(region->own)) longest = node;
  }
  const int64_t width = analysis_.expected_size(columns);
  const bool far = bytes > 2 * static_cast<double>(capabilities_.fast_memory_bytes);
  if (!longest || !far || width < kNarrowest) return std::nullopt;

  ProductPlan plan{};
  plan.sums = region->heads;
  plan.stores = groups_[0];
  plan.columns = {{columns}, {lanes_, kColumnVectors}};
  plan.summed = by_stride(region->own.list(), longest, kNoAxis);
  plan.step.copies = kRowsAtOnce;
  // Only the first of the summed axes comes in blocks; with others inside, one at a time.
  plan.depth = plan.summed.size() == 1 ? kRowsAtOnce : 1;
  if (analysis_.expected_size(plan.summed.back()) < kRowsAtOnce) return std::nullopt;
  plan.through_memory = true;
  plan.flat_stores = true;
  const int64_t step = plan.columns.tile.elements();
  double others = 1;  // cells along other axes
  for (size_t axis : common.list())
    if (axis != columns) others *= static_cast<double>(analysis_.expected_size(axis));
  const int64_t wanted = others < kEnoughCells ? std::min(kEnoughCells, width / kShortPiece) : 1;
  const int64_t pieces = std::max(wanted, width / kLongPiece);
  for (size_t axis : by_stride(common.list(), groups_[0][0], columns)) {
    plan.grid.push_back({axis, 1, {}});
    if (axis != columns) continue;
    plan.grid.back().block = ceil_div(ceil_div(width, pieces), step) * step;
    plan.grid.back().tile = plan.columns.tile;
  }
  return plan;
}

}  // namespace anneal
