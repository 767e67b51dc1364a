#include "kernel/plan/cpu/cpu_planner.h"

#include <algorithm>

#include "kernel/plan/cost.h"

namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

CpuPlanner::CpuPlanner(Analysis& analysis, const Capabilities& capabilities,
                       const std::vector<std::string>& disabled)
    : BodyPlanner(analysis, capabilities, disabled) {
  if (enabled("vectorise"))
    most_lanes_ = std::max(1, capabilities_.vector_bytes / static_cast<int>(widest_element()));
}

KernelPlan::Kind CpuPlanner::choose(bool row_lanes) {
  turned_axis_ = kNoAxis;  // of an earlier plan
  if (auto product = plan_product()) return *std::move(product);
  if (auto columns = plan_column_reduction()) return *std::move(columns);
  return row_lanes ? plan_tiles() : plan_cell();
}

// One lane of a vector after the other.
double CpuPlanner::scattered_access() const { return kScatteredLane * lanes_; }

int CpuPlanner::sums_worthwhile(const Region& region) const {
  return region.nodes.size() > kFewNodesOfSum ? 2 : 4;
}

// The axis of two elements that fill the gaps where a store along the other one leaves every second
// place free.
size_t CpuPlanner::zipped_axis(NodeRef store, size_t axis) {
  if (store->op == Op::Store && stride_of(analysis_, store, axis) == Stride::Two)
    for (size_t other : (analysis_.listed_set(store) & common_axes()).list())
      if (stride_of(analysis_, store, other) == Stride::Unit && analysis_.is_static_size(other) &&
          analysis_.expected_size(other) == 2)
        return other;
  return kNoAxis;
}

// Lanes that are scattered over lines of memory leave the neighbours on those lines to other
// elements: blocks use whole lines, as a transpose needs it.
void CpuPlanner::turn_blocks(size_t vector_axis, CellPlan& plan) {
  if (!enabled("tile") || !enabled("unroll")) return;
  for (const Region& region : regions_)
    for (NodeRef node : region.nodes) {
      if (node->op != Op::Load || stride_of(analysis_, node, vector_axis) != Stride::Other)
        continue;
      for (GridAxis& each : plan.grid) {
        if (each.axis == vector_axis || stride_of(analysis_, node, each.axis) != Stride::Unit)
          continue;
        const int64_t size = analysis_.expected_size(each.axis);
        each.tile.copies = static_cast<int>(std::min<int64_t>(size, lanes_));
        turned_axis_ = each.axis;
        for (GridAxis& other : plan.grid)
          if (other.axis == vector_axis) other.tile.copies = 1;
        return;
      }
    }
}

// Of a transpose in no cache: long pieces of few rows are read, so that memory streams, and whole
// lines of many rows are written.
void CpuPlanner::choose_turned_blocks(size_t vector_axis, int64_t cells, CellPlan& plan) {
  double elements = 1;
  for (const GridAxis& each : plan.grid)
    elements *= static_cast<double>(analysis_.expected_size(each.axis));
  const int64_t rows =
      std::min(kVectorsOfTransposed * lanes_, analysis_.expected_size(vector_axis));
  int64_t left = std::max<int64_t>(1, static_cast<int64_t>(elements) / cells / rows);
  auto block = [&](GridAxis& axis, int64_t wanted) {
    const int64_t step = axis.tile.elements(), size = analysis_.expected_size(axis.axis);
    axis.block = ceil_div(std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, size)), step) * step;
  };
  for (GridAxis& each : plan.grid) {
    if (each.axis == vector_axis) block(each, rows);
    if (each.axis != turned_axis_) continue;
    block(each, left);
    left = std::max<int64_t>(1, left / each.block);
  }
  // Several small ones in one cell.
  for (size_t i = plan.grid.size(); i-- > 0;) {
    GridAxis& each = plan.grid[i];
    if (each.axis == vector_axis || each.axis == turned_axis_) continue;
    block(each, left);
    left = std::max<int64_t>(1, left / each.block);
  }
}

// Of all cells together, on one core.
CpuPlanner::Work CpuPlanner::work_of(size_t vector_axis) {
  Work work;
  for (const Region& region : regions_) {
    const bool around = vector_axis != kNoAxis && region.domain.contains(vector_axis);
    work.nanoseconds += kInstruction * cost(region, around ? vector_axis : best_own_axis(region));
    for (NodeRef node : region.nodes)
      if (is_access(node))
        work.bytes += iterations(analysis_, analysis_.free(node)) *
                      static_cast<double>(byte_size(node->dtype));
  }
  work.nanoseconds = std::max(work.nanoseconds, kByte * work.bytes);
  return work;
}

void CpuPlanner::choose_blocks(size_t vector_axis, CellPlan& plan) {
  const auto [nanoseconds, bytes] = work_of(vector_axis);
  int64_t cells = static_cast<int64_t>(nanoseconds / kCellNanoseconds);
  const int64_t least =
      std::min<int64_t>(kCellsToShare, static_cast<int64_t>(nanoseconds / kWorthSharing));
  cells = std::max({cells, least, int64_t{1}});
  // Cells that share a row would each make its reductions.
  AxisSet rows;
  for (NodeRef reduction : analysis_.reductions()) rows = rows | analysis_.free(reduction);
  int64_t so_far = 1;
  std::stable_partition(plan.grid.begin(), plan.grid.end(),
                        [&](const GridAxis& each) { return rows.contains(each.axis); });
  const bool far = bytes >= 2 * static_cast<double>(capabilities_.streaming_bytes);
  if (turned_axis_ != kNoAxis && far) return choose_turned_blocks(vector_axis, cells, plan);
  for (GridAxis& each : plan.grid) {
    const int64_t size = analysis_.expected_size(each.axis), step = each.tile.elements();
    if (!rows.empty() && !rows.contains(each.axis) && so_far >= std::min(least, kEnoughCells)) {
      each.block = ceil_div(std::max<int64_t>(1, size), step) * step;
      continue;
    }
    const int64_t tiles = std::max<int64_t>(1, ceil_div(size, step));
    const int64_t blocks = std::min(cells, tiles);
    each.block = ceil_div(tiles, blocks) * step;
    cells = ceil_div(cells, ceil_div(size, each.block));
    so_far *= ceil_div(size, each.block);
  }
}

}  // namespace anneal
