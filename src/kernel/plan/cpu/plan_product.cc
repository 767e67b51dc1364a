// Products of matrices in any fused form: how large the tiles in registers and the blocks in caches
// are, and which operands are copied into memory of the cell.
//
// One cell makes a block of the result. The summed axis is taken in blocks so that the operands of
// one, packed, stay in the nearest caches; the sums meanwhile lie in memory of the cell.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernel/plan/cost.h"
#include "kernel/plan/cpu/cpu_planner.h"
namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

// As many sums as there are registers, in the shape that wastes least at the edges.
void CpuPlanner::choose_product_tile(ProductPlan& plan, const ProductPins& pins) const {
  const int heads = static_cast<int>(plan.sums.size());
  const auto down = static_cast<int64_t>(extent(plan.rows.axes));
  const auto across = ceil_div(static_cast<int64_t>(extent(plan.columns.axes)), lanes_);
  plan.columns.tile.lanes = lanes_;
  if (!enabled("unroll")) return;
  if (pins.row_copies > 0) {
    plan.rows.tile.copies = pins.row_copies;
    plan.columns.tile.copies = pins.column_copies;
    return;
  }
  double least = 1e300;
  for (int vectors = 1; vectors <= std::min<int64_t>(kMostVectors, across); ++vectors)
    for (int count = 1; count <= std::min<int64_t>(kMostRowCopies, down); ++count) {
      // The sums, the vectors they need and the element that is spread over lanes.
      if (heads * count * vectors + vectors + 1 > capabilities_.vector_registers) break;
      const double full = static_cast<double>(round_up(down, count));
      const double cost = full * tile_cost({count, vectors, heads, across % vectors == 0});
      if (cost >= least) continue;
      least = cost;
      plan.rows.tile.copies = count;
      plan.columns.tile.copies = vectors;
    }
}

// An operand is worth copying when it is used again and again and does not already lie well.
void CpuPlanner::choose_staged(ProductPlan& plan, const Region& region, const Operands& operands) {
  if (!enabled("stage")) return;
  // Memory of the cell has a size that is known: of one summed axis a block is.
  for (size_t i = 1; i < plan.summed.size(); ++i)
    if (!is_static(analysis_.size(plan.summed[i]))) return;
  auto consider = [&](NodeRef operand, const ProductSide& side, const ProductSide& other) {
    const bool columns = &side == &plan.columns;
    AxisSet within = region.own;
    within.add(side.axes.back());
    const size_t preferred = columns ? side.axes.back() : kNoAxis;
    const size_t unit = axis_of_stride(operand, within, Stride::Unit, preferred);
    const double uses = extent(other.axes) / other.tile.elements();
    const double bytes = iterations(analysis_, analysis_.free(operand)) *
                         static_cast<double>(byte_size(operand->dtype));
    const bool plain = is_plain(operand);
    // Sums over several short axes run as one only over what lies in order.
    const bool in_pieces = plan.summed.size() > 1 &&
                           analysis_.expected_size(plan.summed.back()) < kShortSum &&
                           !can_flatten(std::span(&operand, 1), plan.summed);
    const bool lies_well = plain && (!columns || unit == side.axes.back()) && !in_pieces &&
                           can_flatten(std::span(&operand, 1), side.axes);
    const bool near = bytes <= static_cast<double>(capabilities_.fast_memory_bytes) / 2;
    // Rows that are read element by element in order need not be brought nearer.
    const bool in_order = !columns && lies_as_summed(operand, plan.summed);
    if (lies_well && (near || in_order || uses < 3)) return;
    if (uses < 2 && side.axes.size() == 1 && !in_pieces) return;
    StagedOperand staged{operand, !columns, side.axes.back()};
    if (columns) {
      if (unit != side.axes.back()) staged.turned = unit;
    } else if (unit != kNoAxis) {
      staged.inner = unit;
    } else if (const size_t second = axis_of_stride(operand, within, Stride::Two, preferred);
               second != kNoAxis) {
      staged.inner = second;
    }
    if (unit == plan.summed.back()) staged.flat = flat_axes(operand, plan.summed);
    if (columns && staged.flat < plan.summed.size() &&
        extent(std::span(plan.summed).last(staged.flat)) < lanes_)
      staged.flat = 0;
    if (columns && staged.flat == 0 && staged.turned != kNoAxis &&
        analysis_.expected_size(staged.turned) < lanes_)
      staged.turned = kNoAxis;
    plan.staged.push_back(staged);
  };
  for (NodeRef operand : operands.of_rows) consider(operand, plan.rows, plan.columns);
  for (NodeRef operand : operands.of_columns) consider(operand, plan.columns, plan.rows);
}

// Which axes can run as one, after it is known what is staged.
void CpuPlanner::choose_flat(ProductPlan& plan, const Operands& operands) {
  auto is_staged = [&](NodeRef node) {
    return std::any_of(plan.staged.begin(), plan.staged.end(),
                       [&](const StagedOperand& operand) { return operand.node == node; });
  };
  std::vector<NodeRef> direct = operands.others;
  for (const std::vector<NodeRef>& side : {operands.of_rows, operands.of_columns})
    for (NodeRef node : side)
      if (!is_staged(node)) direct.push_back(node);
  plan.flat_sums = can_flatten(direct, plan.summed);
  // What is not staged must lie as one along a side, or only the last axis is the side.
  for (ProductSide* side : {&plan.rows, &plan.columns})
    if (!can_flatten(direct, side->axes) || !enabled("stage")) side->axes = {side->axes.back()};
  auto stores_flat = [&](std::span<const size_t> axes) {
    return can_flatten(plan.stores, axes, plan.sums);
  };
  // Short sums are stored as they are made where the inner columns, enough of them, lie as one: the
  // outer ones are cells of their own then.
  std::vector<size_t>& columns = plan.columns.axes;
  if (extent(plan.summed) <= kDeepest && !stores_flat(columns))
    for (size_t i = 1; i < columns.size(); ++i) {
      const std::span<const size_t> inner = std::span(columns).subspan(i);
      if (extent(inner) < kEnoughColumns) break;
      if (!stores_flat(inner)) continue;
      columns.erase(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  plan.flat_stores = stores_flat(plan.columns.axes) && stores_flat(plan.rows.axes);
}

// Short axes are packed as one where the elements of a few vectors lie so.
void CpuPlanner::choose_together(ProductPlan& plan) {
  for (StagedOperand& staged : plan.staged) {
    const std::vector<size_t>& axes = (staged.of_rows ? plan.rows : plan.columns).axes;
    if (staged.flat > 0 || staged.inner != axes.back() || staged.node->op != Op::Load) continue;
    if (stride_of(analysis_, staged.node, axes.back()) != Stride::Unit) continue;
    NodeRef position = staged.node->source(1);
    for (size_t count = 2; count <= axes.size(); ++count) {
      const std::span<const size_t> last = std::span(axes).last(count);
      if (extent(last.subspan(1)) >= lanes_ || extent(last) > kVectorsTogether * lanes_) break;
      const bool whole = std::ranges::all_of(last, [&](size_t axis) {
        return analysis_.is_static_size(axis) &&
               plan.grid_axis(axis).block >= static_value(analysis_.size(axis));
      });
      if (whole && can_flatten(std::span(&position, 1), last)) staged.together = count;
    }
  }
}

// Blocks of at most so many elements of a side: whole inner axes, a block of one, single elements
// of those outside it. Answers how many elements a block has.
int64_t CpuPlanner::block_side(ProductPlan& plan, const ProductSide& side, int64_t most) const {
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
void CpuPlanner::choose_depth(ProductPlan& plan, const ProductPins& pins) const {
  plan.depth = 0;
  if (plan.staged.empty()) return;
  if (pins.depth > 0) {
    plan.depth = pins.depth;
    return;
  }
  const auto inner = static_cast<int64_t>(extent(std::span(plan.summed).subspan(1)));
  const int64_t deep = analysis_.expected_size(plan.summed[0]);
  const int64_t most = std::max<int64_t>(1, kDeepest / inner);
  // Up to half as much again is better than a second block.
  const int64_t blocks = deep * 2 <= most * 3 ? 1 : ceil_div(deep, most);
  plan.depth = ceil_div(deep, blocks);
  if (blocks == 1) return;
  // Whole vectors, and no smaller block at the end, where that can be had nearby.
  const int64_t unit = std::min<int64_t>(lanes_ / std::gcd<int64_t>(lanes_, inner), most);
  plan.depth = round_up(plan.depth, unit);
  for (int64_t depth = most; depth > most / 2; --depth)
    if (deep % depth == 0 && depth % unit == 0) {
      plan.depth = depth;
      break;
    }
}

// Sums of several blocks are added up in memory, and what is done with them goes over that.
bool CpuPlanner::has_sums_in_memory(const ProductPlan& plan) const {
  const int64_t deep = analysis_.expected_size(plan.summed[0]);
  const bool one_block =
      plan.staged.empty() || (is_static(analysis_.size(plan.summed[0])) && plan.depth >= deep);
  size_t work = 0;
  for (const Region& each : regions_)
    if (!each.is_reduction) work += each.nodes.size();
  return !one_block || work > kLightStores || !plan.flat_stores;
}

void CpuPlanner::choose_product_blocks(ProductPlan& plan, const Region& region,
                                       const ProductPins& pins) {
  choose_depth(plan, pins);
  plan.through_memory = has_sums_in_memory(plan);
  if (!pins.blocks.empty()) {
    for (size_t i = 0; i < plan.grid.size(); ++i) plan.grid[i].block = pins.blocks[i];
    return;
  }
  if (pins.most_rows > 0) {
    block_side(plan, plan.rows, pins.most_rows);
    block_side(plan, plan.columns, pins.most_columns);
    return;
  }
  // Rows and columns: what is packed of each fits its share of fast memory. Smaller, until there
  // are enough cells to share among threads.
  const auto inner = static_cast<int64_t>(extent(std::span(plan.summed).subspan(1)));
  const int64_t share =
      capabilities_.fast_memory_bytes / 4 / std::max<int64_t>(1, plan.depth * inner);
  double pack_rows = 0, pack_columns = 0;
  for (const StagedOperand& staged : plan.staged)
    (staged.of_rows ? pack_rows : pack_columns) +=
        pack_cost(staged.node, (staged.of_rows ? plan.rows : plan.columns).axes.back(),
                  staged.of_rows, plan.summed);
  const double steps =
      iterations(analysis_, region.domain) / lanes_ * static_cast<double>(region.heads.size());
  const double nanoseconds = steps / kStepsPerNanosecond;
  const double wanted = std::min(kProductCellsToShare, nanoseconds / kProductCellNanoseconds);
  auto count_of = [&](const ProductSide& side) {
    double count = 1;
    for (size_t axis : side.axes)
      count *=
          static_cast<double>(ceil_div(analysis_.expected_size(axis), plan.grid_axis(axis).block));
    return count;
  };
  // Load balance: what the core with most cells does, packing included.
  const double cores = capabilities_.cores;
  const double most_cells = std::min(kMostCellsOfCore * cores, nanoseconds / kFewestNanoseconds);
  auto busiest = [&](double cells) {
    const double packing = pack_columns * count_of(plan.rows) + pack_rows * count_of(plan.columns);
    return std::ceil(cells / cores) / cells * (steps + packing);
  };
  int64_t down = share, across = share;
  std::array<int64_t, 2> best{};  // empty until there are enough cells
  double least_busy = 0;
  while (true) {
    const int64_t rows = block_side(plan, plan.rows, down);
    const int64_t columns = block_side(plan, plan.columns, across);
    double cells = 1;
    for (const GridAxis& axis : plan.grid)
      cells *= static_cast<double>(ceil_div(analysis_.expected_size(axis.axis), axis.block));
    const bool can_rows = rows > std::max<int64_t>(kSmallestBlock, plan.rows.tile.elements());
    const bool can_columns =
        columns > std::max<int64_t>(kSmallestBlock, plan.columns.tile.elements());
    // What it costs to pack one side once more for every block that the other has then.
    const double more_rows = can_rows ? pack_columns * count_of(plan.rows) : 1e300;
    const double more_columns = can_columns ? pack_rows * count_of(plan.columns) : 1e300;
    const bool enough =
        cells >= wanted ||
        (cells >= kFewestCells && std::min(more_rows, more_columns) > kWorthPacking * steps);
    // Few cores share so many cells evenly enough; for many, halving goes on while it may pay.
    if (enough && (best[0] == 0 || busiest(cells) < kEvener * least_busy)) {
      best = {down, across};
      least_busy = busiest(cells);
    }
    const bool uneven = cores > kFewCores && cells < most_cells;
    if ((enough && !uneven) || (!can_rows && !can_columns)) break;
    if (more_columns < more_rows || (more_columns == more_rows && columns >= rows))
      across = ceil_div(columns, 2);
    else
      down = ceil_div(rows, 2);
  }
  if (best[0] == 0 || (best[0] == down && best[1] == across)) return;
  block_side(plan, plan.rows, best[0]);
  block_side(plan, plan.columns, best[1]);
}

std::optional<ProductPlan> CpuPlanner::plan_product(const ProductPins& pins) {
  const Region* region = enabled("tile") ? heaviest_sum() : nullptr;
  if (!region || iterations(analysis_, region->domain) < kFewestSteps) return std::nullopt;
  const AxisSet common = common_axes();
  const auto [rows, columns] = choose_sides(*region);
  if (rows == kNoAxis) return std::nullopt;
  const Operands operands = operands_of(*region, rows, columns);
  ProductPlan plan{};
  plan.sums = region->heads;
  plan.stores = groups_[0];
  plan.rows.axes = side_axes(operands.of_rows, operands.of_columns);
  plan.columns.axes = side_axes(operands.of_columns, operands.of_rows);
  plan.summed = summed_order(*region, operands);
  for (size_t axis : by_stride(common.list(), groups_[0][0], columns))
    plan.grid.push_back({axis, 1, {}});
  if (!pins.blocks.empty() && pins.blocks.size() != plan.grid.size()) return std::nullopt;
  choose_product_tile(plan, pins);
  choose_staged(plan, *region, operands);
  choose_flat(plan, operands);
  choose_product_tile(plan, pins);
  choose_product_blocks(plan, *region, pins);
  choose_together(plan);
  for (GridAxis& axis : plan.grid) {
    if (plan.rows.axes.size() == 1 && axis.axis == plan.rows.axes[0]) axis.tile = plan.rows.tile;
    if (plan.columns.axes.size() == 1 && axis.axis == plan.columns.axes[0])
      axis.tile = plan.columns.tile;
  }
  return plan;
}

}  // namespace anneal
