// Products of matrices in any fused form: which axes are rows and columns, how large the tiles in
// registers and the blocks in caches are, and which operands are copied into memory of the cell.
//
// One cell makes a block of the result. The summed axis is taken in blocks so that the operands of
// one, packed, stay in the nearest caches; the sums meanwhile lie in memory of the cell.
#include <algorithm>
#include <cmath>

#include "kernel/plan.h"

namespace anneal {
namespace {

// Multiply-adds of vectors in a nanosecond, roughly; what packing an element costs in them.
constexpr double kStepsPerNanosecond = 3.0;
constexpr double kPackContiguous = 0.2, kPackTurned = 0.5, kPackScattered = 1.6;
constexpr double kStoreScattered = 1.6;

// Below these nothing is gained: there is too little to use twice.
constexpr int64_t kFewestRows = 4;
constexpr double kFewestSteps = 4096;

constexpr double kCellNanoseconds = 40e3;
constexpr int64_t kCellsToShare = 16;
constexpr int64_t kSmallestBlock = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

// What the terms of a sum are made of: subexpressions that change with the summed axes and with
// rows or columns but not with both, as large as they can be.
struct Planner::Operands {
  std::vector<NodeRef> of_rows, of_columns;
  std::vector<NodeRef> others;  // depend on neither
  bool mixed = false;           // something depends on both
};

Planner::Operands Planner::operands_of(const Region& region, size_t rows, size_t columns) {
  Operands operands;
  NodeMap<char> seen;
  std::vector<NodeRef> stack;
  for (NodeRef head : region.heads) stack.push_back(head->source(0));
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    const AxisSet& free = analysis_.free(node);
    if ((free & region.own).empty() || !seen.insert(node, 1).second) continue;
    if (!free.contains(rows) || !free.contains(columns)) {
      (free.contains(rows)      ? operands.of_rows
       : free.contains(columns) ? operands.of_columns
                                : operands.others)
          .push_back(node);
      continue;
    }
    if (!is_elementwise(node->op) || node->dtype == DType::Index) {
      operands.mixed = true;
      continue;
    }
    for (NodeRef source : node->sources()) stack.push_back(source);
  }
  return operands;
}

// The axis among these along which most loads of an operand read neighbours.
size_t Planner::unit_axis(NodeRef operand, const AxisSet& axes) {
  size_t best = kNoAxis, most = 0;
  for (size_t axis : (axes & analysis_.free(operand)).list()) {
    size_t count = 0;
    for (NodeRef node : topological_order(std::span(&operand, 1)))
      if (node->op == Op::Load && stride_of(analysis_, node, axis) == Stride::Unit) ++count;
    if (count <= most) continue;
    best = axis;
    most = count;
  }
  return best;
}

// Steps of the whole product with these rows and columns, tiles rounded up.
double Planner::product_cost(const Region& region, size_t rows, size_t columns) {
  const Operands operands = operands_of(region, rows, columns);
  if (operands.mixed || operands.of_rows.empty() || operands.of_columns.empty()) return -1;
  AxisSet others = region.domain;
  others.remove(rows);
  others.remove(columns);
  const double across = static_cast<double>(ceil_div(analysis_.expected_size(columns), lanes_));
  const double down = static_cast<double>(analysis_.expected_size(rows));
  double cost = iterations(analysis_, others) * across * (down + 1);
  auto pack = [&](NodeRef operand, size_t wanted) {
    AxisSet within = region.own;
    within.add(wanted);
    const size_t unit = unit_axis(operand, within);
    const double each = unit == kNoAxis                    ? kPackScattered
                        : unit == wanted || wanted == rows ? kPackContiguous
                                                           : kPackTurned;
    return each * iterations(analysis_, analysis_.free(operand));
  };
  for (NodeRef operand : operands.of_rows) cost += pack(operand, rows);
  for (NodeRef operand : operands.of_columns) cost += pack(operand, columns);
  for (NodeRef store : groups_[0])
    if (stride_of(analysis_, store, columns) != Stride::Unit)
      cost += kStoreScattered * iterations(analysis_, analysis_.listed_set(store));
  return cost;
}

// As many sums as there are registers, in the shape that wastes least at the edges.
void Planner::choose_product_tile(ProductPlan& plan, const Region& region) const {
  const int heads = static_cast<int>(region.heads.size());
  const int64_t down = analysis_.expected_size(plan.rows);
  const int64_t across = ceil_div(analysis_.expected_size(plan.columns), lanes_);
  Tile rows{1, 1}, columns{lanes_, 1};
  if (enabled("unroll")) {
    double least = 1e300;
    for (int vectors = 1; vectors <= std::min<int64_t>(4, across); ++vectors)
      for (int count = 1; count <= std::min<int64_t>(16, down); ++count) {
        // The sums, the vectors they need and the element that is spread over lanes.
        if (heads * count * vectors + vectors + 1 > capabilities_.vector_registers) break;
        const int64_t rest = across % vectors;
        const double full = static_cast<double>(round_up(down, count));
        const double wide = static_cast<double>(across);
        const double loads = 0.12 / count + 0.12 / vectors + (rest == 0 ? 0 : 0.01);
        const double idle = heads * count * vectors < 8 ? 0.5 : 0;  // sums wait for each other
        const double cost = full * wide * (1 + loads + idle);
        if (cost >= least) continue;
        least = cost;
        rows.copies = count;
        columns.copies = vectors;
      }
  }
  for (GridAxis& axis : plan.grid) {
    if (axis.axis == plan.rows) axis.tile = rows;
    if (axis.axis == plan.columns) axis.tile = columns;
  }
}

// An operand is worth copying when it is used again and again and does not already lie well.
void Planner::choose_staged(ProductPlan& plan, const Region& region, const Operands& operands) {
  if (!enabled("stage")) return;
  auto bytes_of = [&](NodeRef operand) {
    return iterations(analysis_, analysis_.free(operand)) *
           static_cast<double>(byte_size(operand->dtype));
  };
  auto is_plain = [&](NodeRef operand) {
    return operand->op == Op::Load && operand->source(2)->is_const();
  };
  auto tile_of = [&](size_t axis) {
    for (const GridAxis& each : plan.grid)
      if (each.axis == axis) return each.tile.elements();
    return 1;
  };
  auto consider = [&](NodeRef operand, size_t side, size_t other) {
    AxisSet within = region.own;
    within.add(side);
    const size_t unit = unit_axis(operand, within);
    const bool columns = side == plan.columns;
    const double uses = static_cast<double>(analysis_.expected_size(other)) / tile_of(other);
    const bool lies_well = is_plain(operand) && (!columns || unit == side);
    const double room = static_cast<double>(capabilities_.fast_memory_bytes);
    if (uses < 2 || (lies_well && (uses < 3 || bytes_of(operand) <= room))) return;
    StagedOperand staged{operand, side};
    if (columns) {
      if (unit != side) staged.turned = unit;
    } else if (unit != kNoAxis) {
      staged.inner = unit;
    }
    plan.staged.push_back(staged);
  };
  for (NodeRef operand : operands.of_rows) consider(operand, plan.rows, plan.columns);
  for (NodeRef operand : operands.of_columns) consider(operand, plan.columns, plan.rows);
}

void Planner::choose_product_blocks(ProductPlan& plan, const Region& region,
                                    const Operands& operands) {
  // Depth: the largest reduced axis is taken in blocks, the others as a whole.
  plan.blocked = region.own.list()[0];
  for (size_t axis : region.own.list())
    if (analysis_.expected_size(axis) > analysis_.expected_size(plan.blocked)) plan.blocked = axis;
  AxisSet inner_axes = region.own;
  inner_axes.remove(plan.blocked);
  const auto inner = static_cast<int64_t>(iterations(analysis_, inner_axes));
  const int64_t deep = analysis_.expected_size(plan.blocked);
  constexpr int64_t kDeepest = 384;
  const int64_t most = std::max<int64_t>(1, kDeepest / inner);
  // Up to half as much again is better than a second block.
  const int64_t blocks = deep * 2 <= most * 3 ? 1 : ceil_div(deep, most);
  plan.depth = ceil_div(deep, blocks);
  if (blocks > 1) {
    // Whole vectors, and no smaller block at the end, where that can be had nearby.
    const int64_t unit = std::min<int64_t>(lanes_, most);
    plan.depth = round_up(plan.depth, unit);
    for (int64_t depth = most; depth > most / 2; --depth)
      if (deep % depth == 0 && depth % unit == 0) {
        plan.depth = depth;
        break;
      }
  }
  const bool known =
      plan.staged.empty() || (is_static(analysis_.size(plan.blocked)) && plan.depth >= deep);

  // Rows and columns: what is packed of each fits its share of fast memory.
  const int64_t share =
      capabilities_.fast_memory_bytes / 4 / std::max<int64_t>(1, plan.depth * inner);
  auto largest = [&](size_t axis, const Tile& tile) {
    const int64_t size = analysis_.expected_size(axis), step = tile.elements();
    const int64_t most_elements = std::max<int64_t>(step, share / step * step);
    const int64_t count = ceil_div(size, most_elements);
    return round_up(ceil_div(size, count), step);
  };
  double cells = 1;
  GridAxis *rows = nullptr, *columns = nullptr;
  for (GridAxis& axis : plan.grid) {
    axis.block = 1;
    if (axis.axis == plan.rows) rows = &axis;
    if (axis.axis == plan.columns) columns = &axis;
  }
  rows->block = largest(rows->axis, rows->tile);
  columns->block = largest(columns->axis, columns->tile);
  // An axis that only one side has takes part in that side's blocks.
  auto in_any = [&](const std::vector<NodeRef>& nodes, size_t axis) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](NodeRef node) { return analysis_.free(node).contains(axis); });
  };
  for (GridAxis& axis : plan.grid) {
    if (&axis == rows || &axis == columns) continue;
    const bool of_rows = in_any(operands.of_rows, axis.axis);
    const bool of_columns = in_any(operands.of_columns, axis.axis);
    GridAxis& side = of_columns ? *columns : *rows;
    if (of_rows != of_columns && side.block >= analysis_.expected_size(side.axis)) {
      const int64_t room = std::max<int64_t>(1, share / side.block);
      const int64_t size = analysis_.expected_size(axis.axis);
      axis.block = ceil_div(size, ceil_div(size, room));
    }
  }
  auto count_cells = [&] {
    cells = 1;
    for (const GridAxis& axis : plan.grid)
      cells *= static_cast<double>(ceil_div(analysis_.expected_size(axis.axis), axis.block));
    return cells;
  };
  // Smaller blocks, until there are enough cells to share among threads.
  const double steps =
      iterations(analysis_, region.domain) / lanes_ * static_cast<double>(region.heads.size());
  const double nanoseconds = steps / kStepsPerNanosecond;
  const double wanted = std::min<double>(kCellsToShare, nanoseconds / kCellNanoseconds);
  while (count_cells() < wanted) {
    GridAxis* halved = nullptr;
    for (GridAxis& axis : plan.grid) {
      const int64_t least = &axis == rows || &axis == columns
                                ? std::max<int64_t>(kSmallestBlock, axis.tile.elements())
                                : 1;
      if (axis.block / 2 < least && axis.block <= least * 2 - 1) continue;
      if (axis.block <= axis.tile.elements()) continue;
      if (!halved || axis.block > halved->block) halved = &axis;
    }
    if (!halved) break;
    const int64_t size = std::min(halved->block, analysis_.expected_size(halved->axis));
    halved->block = round_up(ceil_div(size, 2), halved->tile.elements());
  }
  constexpr size_t kLightStores = 10;
  size_t work = 0;
  for (const Region& each : regions_)
    if (!each.is_reduction) work += each.nodes.size();
  plan.through_memory = !known || work > kLightStores;
}

std::optional<ProductPlan> Planner::plan_product() {
  const bool simple = groups_.size() == 1 && analysis_.body().tiles.empty() && enabled("tile");
  if (!simple) return std::nullopt;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return std::nullopt;
  // The heaviest reduction, if it is most of the work.
  const Region* region = nullptr;
  double total = 0, most = 0;
  for (const Region& each : regions_) {
    const double work = iterations(analysis_, each.domain) * static_cast<double>(each.nodes.size());
    total += work;
    if (!each.is_reduction || work <= most) continue;
    region = &each;
    most = work;
  }
  if (!region || most < total / 2) return std::nullopt;
  const bool outer = common.contains(region->domain.without(region->own));
  if (!outer || iterations(analysis_, region->domain) < kFewestSteps) return std::nullopt;

  ProductPlan plan{};
  double least = -1;
  for (size_t columns : (common & region->domain).list())
    for (size_t rows : (common & region->domain).list()) {
      if (rows == columns || analysis_.expected_size(rows) < kFewestRows) continue;
      const double cost = product_cost(*region, rows, columns);
      if (cost < 0 || (least >= 0 && cost >= least)) continue;
      least = cost;
      plan.rows = rows;
      plan.columns = columns;
    }
  if (least < 0) return std::nullopt;
  plan.sums = region->heads;
  plan.stores = groups_[0];
  for (size_t axis : by_stride(common.list(), groups_[0][0], plan.columns))
    plan.grid.push_back({axis, 1, {}});
  // Rows last but one: the blocks of both stand beside each other.
  std::stable_partition(plan.grid.begin(), plan.grid.end(), [&](const GridAxis& axis) {
    return axis.axis != plan.rows && axis.axis != plan.columns;
  });
  const Operands operands = operands_of(*region, plan.rows, plan.columns);
  choose_product_tile(plan, *region);
  choose_staged(plan, *region, operands);
  // Memory of the cell has a size that is known; so must what is staged: all but one axis.
  if (std::ranges::count_if(region->own.list(), [&](size_t axis) {
        return !is_static(analysis_.size(axis));
      }) > (region->own.list().size() > 1 ? 0 : 1))
    plan.staged.clear();
  choose_product_blocks(plan, *region, operands);
  plan.flat = plan.staged.size() == operands.of_rows.size() + operands.of_columns.size() &&
              operands.others.empty();
  return plan;
}

}  // namespace anneal
