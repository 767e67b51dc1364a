// How a product is cut: blocks of its sums, whose operands stay in the nearest caches, and cells
// that threads take one after the other. It follows from sizes and caches alone, never from how
// many threads there are.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/plan.h"

namespace anneal {
namespace {

// Multiply-adds of vectors in a nanosecond, roughly.
constexpr double kStepsPerNanosecond = 3.0;
constexpr double kCellNanoseconds = 40e3, kStartNanoseconds = 500;
// Steps that a byte takes which a cell reads anew, from a cache that all share or from memory.
constexpr double kFarByte = 0.1;
// Threads that cells shall come out even for; fewer that divide this do then, too.
constexpr int kMostThreads = 16;
constexpr double kFewestCells = 4;
constexpr double kWorthPacking = 0.08;  // part of all steps that more cells may cost
constexpr int64_t kSmallestBlock = 64, kMostBlocks = 32;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// How much longer the thread with most cells takes than if all had the same, at worst.
double unevenness(double cells, double threads) {
  double worst = 1;
  for (double each = 1; each <= threads; each *= 2)
    worst = std::max(worst, std::ceil(cells / each) * each / cells);
  return worst;
}

}  // namespace

// Blocks of at most so many elements of a side: whole inner axes, a block of one, single elements
// of those outside it. Answers how many elements a block has.
int64_t Planner::block_side(ProductPlan& plan, const ProductSide& side, int64_t most) const {
  int64_t inside = 1;
  for (size_t i = side.axes.size(); i-- > 0;) {
    const size_t axis = side.axes[i];
    const int64_t size = analysis_.expected_size(axis);
    const int64_t step =
        i + 1 == side.axes.size() && side.axes.size() == 1 ? side.tile.elements() : 1;
    const int64_t room = std::max<int64_t>(1, most / inside);
    // A little more is better than one block more.
    const int64_t nearly = room + room / 4;
    int64_t block = std::max(step, (size <= nearly ? nearly : room) / step * step);
    if (ceil_div(size, std::max(step, nearly / step * step)) < ceil_div(size, block))
      block = nearly / step * step;
    block = round_up(ceil_div(size, ceil_div(size, block)), step);
    // Axes outside of one that is not whole come one by one.
    const bool whole_inside =
        i + 1 == side.axes.size() ||
        plan.grid_axis(side.axes[i + 1]).block >= analysis_.expected_size(side.axes[i + 1]);
    if (!whole_inside || (!is_static(analysis_.size(axis)) && i > 0)) block = 1;
    for (GridAxis& each : plan.grid)
      if (each.axis == axis) each.block = block;
    inside *= std::min(block, round_up(size, step));
  }
  return inside;
}

// Depth: the largest reduced axis is taken in blocks, the others as a whole.
void Planner::choose_product_depth(ProductPlan& plan) const {
  const auto inner = static_cast<int64_t>(extent(std::span(plan.summed).subspan(1)));
  const int64_t deep = analysis_.expected_size(plan.summed[0]);
  const int64_t most = std::max<int64_t>(1, kDeepest / inner);
  // Up to half as much again is better than a second block.
  const int64_t blocks = deep * 2 <= most * 3 ? 1 : ceil_div(deep, most);
  plan.depth = ceil_div(deep, blocks);
  if (blocks > 1) {
    // Whole vectors, and no smaller block at the end, where that can be had nearby.
    const int64_t unit = std::min<int64_t>(lanes_ / std::gcd<int64_t>(lanes_, inner), most);
    plan.depth = round_up(plan.depth, unit);
    for (int64_t depth = most; depth > most / 2; --depth)
      if (deep % depth == 0 && depth % unit == 0) {
        plan.depth = depth;
        break;
      }
  }
  if (plan.staged.empty()) plan.depth = 0;
  const bool one_block =
      plan.staged.empty() || (is_static(analysis_.size(plan.summed[0])) && plan.depth >= deep);
  size_t work = 0;
  for (const Region& each : regions_)
    if (!each.is_reduction) work += each.nodes.size();
  constexpr size_t kLightStores = 10;
  plan.through_memory = !one_block || work > kLightStores || !plan.flat_stores;
}

// The cells of the plan as it stands, and how much larger the largest is than all are on average.
Planner::CellCount Planner::cells_of(const ProductPlan& plan) const {
  CellCount count;
  for (const GridAxis& axis : plan.grid) {
    const auto size = static_cast<double>(analysis_.expected_size(axis.axis));
    const double blocks = std::ceil(size / static_cast<double>(axis.block));
    count.cells *= std::max(1.0, blocks);
    if (size > 0) count.largest *= std::min(static_cast<double>(axis.block), size) * blocks / size;
  }
  return count;
}

// Rows and columns: what is packed of each fits its share of fast memory, and threads have the same
// to do. The less there is to do, the fewer threads are worth it.
void Planner::choose_product_cells(ProductPlan& plan, const Region& region) {
  const auto inner = static_cast<int64_t>(extent(std::span(plan.summed).subspan(1)));
  const int64_t share = std::max<int64_t>(
      1, capabilities_.fast_memory_bytes / 4 / std::max<int64_t>(1, plan.depth * inner));
  double pack_rows = 0, pack_columns = 0;
  for (const StagedOperand& staged : plan.staged)
    (staged.of_rows ? pack_rows : pack_columns) +=
        pack_cost(staged.node, (staged.of_rows ? plan.rows : plan.columns).axes.back(),
                  staged.of_rows, plan.summed);
  const double steps =
      iterations(analysis_, region.domain) / lanes_ * static_cast<double>(region.heads.size());
  // What all of each side's operands take.
  const double each = static_cast<double>(extent(plan.summed)) *
                      static_cast<double>(byte_size(plan.sums[0]->dtype));
  const double row_bytes = extent(plan.rows.axes) * each,
               column_bytes = extent(plan.columns.axes) * each;
  const double threads =
      std::min<double>(kMostThreads, steps / kStepsPerNanosecond / kCellNanoseconds);

  // Limits of blocks: fractions of a side, from what the share has room for to the smallest.
  auto limits = [&](const ProductSide& side) {
    std::vector<int64_t> found{share};
    const auto all = static_cast<int64_t>(extent(side.axes));
    const int64_t smallest = std::max<int64_t>(kSmallestBlock, side.tile.elements());
    for (int64_t count = ceil_div(all, share) + 1; count <= kMostBlocks; ++count) {
      if (all / count < smallest) break;
      found.push_back(ceil_div(all, count));
    }
    return found;
  };
  double least = -1, first_packing = -1;
  int64_t best_down = share, best_across = share;
  for (const int64_t down : limits(plan.rows))
    for (const int64_t across : limits(plan.columns)) {
      block_side(plan, plan.rows, down);
      block_side(plan, plan.columns, across);
      const CellCount count = cells_of(plan);
      const double packing =
          pack_columns * blocks_of(plan, plan.rows) + pack_rows * blocks_of(plan, plan.columns);
      if (first_packing < 0) first_packing = packing;
      if (least >= 0 && count.cells > kFewestCells &&
          packing - first_packing > kWorthPacking * steps)
        continue;
      const double far =
          row_bytes * blocks_of(plan, plan.columns) + column_bytes * blocks_of(plan, plan.rows);
      const double cost = steps * count.largest * unevenness(count.cells, threads) + packing +
                          far * kFarByte + count.cells * kStartNanoseconds * kStepsPerNanosecond;
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best_down = down;
      best_across = across;
    }
  block_side(plan, plan.rows, best_down);
  block_side(plan, plan.columns, best_across);
}

double Planner::blocks_of(const ProductPlan& plan, const ProductSide& side) const {
  double count = 1;
  for (size_t axis : side.axes)
    count *=
        static_cast<double>(ceil_div(analysis_.expected_size(axis), plan.grid_axis(axis).block));
  return count;
}

}  // namespace anneal
