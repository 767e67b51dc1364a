// Products of matrices in any fused form: which axes are rows and columns, how large the tiles in
// registers and the blocks in caches are, and which operands are copied into memory of the cell.
//
// One cell makes a block of the result. The summed axis is taken in blocks so that the operands of
// one, packed, stay in the nearest caches; the sums meanwhile lie in memory of the cell.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernel/plan/cost.h"
#include "kernel/plan/plan.h"

namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

Planner::Operands Planner::operands_of(const Region& region, size_t rows, size_t columns) {
  std::vector<NodeRef> terms;
  for (NodeRef head : region.heads) terms.push_back(head->source(0));
  return product_operands(terms, region.own, rows, columns, analysis_.free_axes());
}

double Planner::extent(std::span<const size_t> axes) const {
  double product = 1;
  for (size_t axis : axes) product *= static_cast<double>(analysis_.expected_size(axis));
  return product;
}

// The axis among these along which most loads of an operand move in such steps; of equals the
// longest, but `preferred` before all.
size_t Planner::axis_of_stride(NodeRef operand, const AxisSet& axes, Stride stride,
                               size_t preferred) {
  size_t best = kNoAxis, most = 0;
  for (size_t axis : (axes & analysis_.free(operand)).list()) {
    size_t count = 0;
    for (NodeRef node : topological_order(std::span(&operand, 1)))
      if (node->op == Op::Load && stride_of(analysis_, node, axis) == stride) ++count;
    const bool better =
        axis == preferred || (best != kNoAxis && best != preferred &&
                              analysis_.expected_size(axis) > analysis_.expected_size(best));
    if (count < most || count == 0 || (count == most && !better)) continue;
    best = axis;
    most = count;
  }
  return best;
}

// The axes of the grid that only one side's operands have, in the order of the result. The sizes of
// all but the outermost must be known.
std::vector<size_t> Planner::side_axes(const std::vector<NodeRef>& here,
                                       const std::vector<NodeRef>& there) {
  AxisSet mine, theirs;
  for (NodeRef node : here) mine = mine | analysis_.free(node);
  for (NodeRef node : there) theirs = theirs | analysis_.free(node);
  const AxisSet only = (mine & common_axes()).without(theirs);
  std::vector<size_t> axes = by_stride(only.list(), groups_[0][0], kNoAxis);
  for (size_t i = axes.size(); i-- > 1;)
    if (!is_static(analysis_.size(axes[i]))) {
      axes.erase(axes.begin(), axes.begin() + static_cast<long>(i));
      break;
    }
  return axes;
}

// Whether everything that is loaded and stored for these nodes, up to other reductions, lies as if
// the axes were one: each moves as far as all of the next one together.
bool Planner::can_flatten(std::span<const NodeRef> roots, std::span<const size_t> axes,
                          std::span<const NodeRef> known) {
  if (axes.size() < 2) return true;
  AxisSet set;
  for (size_t axis : axes) set.add(axis);
  std::vector<NodeRef> stack(roots.begin(), roots.end());
  NodeMap<char> seen;
  for (NodeRef node : known) seen[node] = 1;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (!seen.insert(node, 1).second || (analysis_.free(node) & set).empty()) continue;
    if (node->op == Op::Buffer || node->op == Op::Const) continue;
    if (node->dtype == DType::Index) {
      const AxisForm& form = analysis_.form(node);
      if (form.overflow || !(form.in_rest & set).empty()) return false;
      for (size_t i = 0; i + 1 < axes.size(); ++i) {
        if (!is_static(analysis_.size(axes[i + 1]))) return false;
        LinearForm difference = form.slope(axes[i]);
        difference.add(form.slope(axes[i + 1]), -static_value(analysis_.size(axes[i + 1])));
        if (!is_zero(difference)) return false;
      }
      continue;
    }
    const size_t sources =
        node->op == Op::Store || node->op == Op::StoreAdd || is_reduce_over(node->op)
            ? info(node->op).sources
            : node->source_count;
    for (NodeRef source : node->sources().first(sources)) stack.push_back(source);
  }
  return true;
}

bool Planner::is_plain(NodeRef operand) {
  return operand->op == Op::Load && operand->source(2)->is_const();
}

// Whether the elements that are summed are neighbours in memory, in order.
bool Planner::lies_as_summed(NodeRef operand, std::span<const size_t> summed) {
  return is_plain(operand) && can_flatten(std::span(&operand, 1), summed) &&
         stride_of(analysis_, operand, summed.back()) == Stride::Unit;
}

// How many of the summed axes, the last ones, are neighbours in memory, in order; 0 where only one
// of several is.
size_t Planner::flat_axes(NodeRef operand, std::span<const size_t> summed) {
  for (size_t count = summed.size(); count > 1 || count == summed.size(); --count)
    if (lies_as_summed(operand, summed.last(count))) return count;
  return 0;
}

// Steps it takes to bring all of an operand into memory of the cell once.
double Planner::pack_cost(NodeRef operand, size_t last, bool of_rows,
                          std::span<const size_t> summed) {
  AxisSet within;
  within.add(last);
  for (size_t axis : summed) within.add(axis);
  // What lanes run along is best read as neighbours.
  const size_t preferred = of_rows ? kNoAxis : last;
  const size_t unit = axis_of_stride(operand, within, Stride::Unit, preferred);
  const size_t flat_count = unit == summed.back() ? flat_axes(operand, summed) : 0;
  const bool flat = flat_count > 0 && extent(summed.last(flat_count)) >= lanes_;
  const double full = lanes_;
  double each = kPackScattered;
  if (unit != kNoAxis && (of_rows || unit == last))
    each = kPackContiguous * full /
           (flat_count > 0 ? speed_over(extent(summed.last(flat_count))) : speed(unit));
  else if (unit != kNoAxis && (flat || analysis_.expected_size(unit) >= lanes_))
    each = kPackTurned * full / speed(last);
  const size_t second = axis_of_stride(operand, within, Stride::Two, preferred);
  if (second != kNoAxis && (second == last || (of_rows && unit == kNoAxis)))
    each = std::min(each, kPackSecond * full / speed(second));
  if (!is_plain(operand)) each *= kPackComputed;
  return std::min(each, kPackScattered) * iterations(analysis_, analysis_.free(operand));
}

// Steps of the whole product with these rows and columns, tiles rounded up.
double Planner::product_cost(const Region& region, size_t rows, size_t columns) {
  const Operands operands = operands_of(region, rows, columns);
  if (!operands.is_product()) return -1;
  const std::vector<size_t> down = side_axes(operands.of_rows, operands.of_columns);
  const std::vector<size_t> across = side_axes(operands.of_columns, operands.of_rows);
  if (down.back() != rows || across.back() != columns) return -1;  // the same with other names
  AxisSet others = region.domain;
  for (size_t axis : down) others.remove(axis);
  for (size_t axis : across) others.remove(axis);
  if (extent(down) < kFewestRows) return -1;
  const double vectors = std::ceil(extent(across) / lanes_);
  double cost = iterations(analysis_, others) * vectors * (extent(down) + 1);
  const std::vector<size_t> summed = summed_order(region, operands);
  // Threads share the side whose operands cost more to pack; those of the other are packed again
  // for each.
  double pack_rows = 0, pack_columns = 0;
  for (NodeRef operand : operands.of_rows)
    if (!lies_as_summed(operand, summed)) pack_rows += pack_cost(operand, rows, true, summed);
  for (NodeRef operand : operands.of_columns)
    pack_columns += pack_cost(operand, columns, false, summed);
  cost += pack_rows + pack_columns + (kRepeats - 1) * std::min(pack_rows, pack_columns);
  for (NodeRef store : groups_[0])
    if (stride_of(analysis_, store, columns) != Stride::Unit)
      cost += kStoreScattered * iterations(analysis_, analysis_.listed_set(store));
  return cost;
}

// The reduced axes as an operand has them in memory, so that they may run as one; but where the
// inner ones are too many for a block, the largest first.
std::vector<size_t> Planner::summed_order(const Region& region, const Operands& operands) {
  std::vector<size_t> order = region.own.list();
  for (const std::vector<NodeRef>& side : {operands.of_columns, operands.of_rows})
    for (NodeRef operand : side)
      for (NodeRef node : topological_order(std::span(&operand, 1)))
        if (node->op == Op::Load && analysis_.free(node->source(1)).contains(region.own))
          order = by_stride(region.own.list(), node, kNoAxis);
  if (extent(std::span(order).subspan(1)) <= kDeepest) return order;
  auto deepest = std::max_element(order.begin(), order.end(), [&](size_t a, size_t b) {
    return analysis_.expected_size(a) < analysis_.expected_size(b);
  });
  std::rotate(order.begin(), deepest, deepest + 1);
  return order;
}

// As many sums as there are registers, in the shape that wastes least at the edges.
void Planner::choose_product_tile(ProductPlan& plan, const ProductPins& pins) const {
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
  for (int vectors = 1; vectors <= std::min<int64_t>(4, across); ++vectors)
    for (int count = 1; count <= std::min<int64_t>(16, down); ++count) {
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
void Planner::choose_staged(ProductPlan& plan, const Region& region, const Operands& operands) {
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
      if (unit != side.axes.back() && is_simd()) staged.turned = unit;
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
void Planner::choose_flat(ProductPlan& plan, const Operands& operands) {
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
void Planner::choose_together(ProductPlan& plan) {
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
void Planner::choose_depth(ProductPlan& plan, const ProductPins& pins) const {
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
bool Planner::has_sums_in_memory(const ProductPlan& plan) const {
  const int64_t deep = analysis_.expected_size(plan.summed[0]);
  const bool one_block =
      plan.staged.empty() || (is_static(analysis_.size(plan.summed[0])) && plan.depth >= deep);
  size_t work = 0;
  for (const Region& each : regions_)
    if (!each.is_reduction) work += each.nodes.size();
  return !one_block || work > kLightStores || !plan.flat_stores;
}

void Planner::choose_product_blocks(ProductPlan& plan, const Region& region,
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

// The reduction that most of the work goes into, if all else is one group of stores that follows
// it.
const Region* Planner::heaviest_sum() const {
  if (groups_.size() != 1 || !analysis_.body().tiles.empty()) return nullptr;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return nullptr;
  const Region* heaviest = nullptr;
  double total = 0, most = 0;
  for (const Region& each : regions_) {
    const double work = iterations(analysis_, each.domain) * static_cast<double>(each.nodes.size());
    total += work;
    if (!each.is_reduction || work <= most) continue;
    heaviest = &each;
    most = work;
  }
  if (!heaviest || most < total / 2) return nullptr;
  return common.contains(heaviest->domain.without(heaviest->own)) ? heaviest : nullptr;
}

Planner::Sides Planner::choose_sides(const Region& region) {
  const std::vector<size_t> axes = (common_axes() & region.domain).list();
  Sides sides;
  double least = -1;
  for (size_t across : axes)
    for (size_t down : axes) {
      if (down == across) continue;
      const double cost = product_cost(region, down, across);
      if (cost < 0 || (least >= 0 && cost >= least)) continue;
      least = cost;
      sides = {down, across};
    }
  return sides;
}

std::optional<ProductPlan> Planner::plan_product(const ProductPins& pins) {
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
