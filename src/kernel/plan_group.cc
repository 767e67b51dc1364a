// How a body runs on a device whose lanes are threads: a thread for each element, a rectangle of a
// product for each group, or, where neither does well, a group for each row.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernel/plan.h"
#include "schedule/axis_bounds.h"

namespace anneal {
namespace {

constexpr double kFewestSteps = 4096, kFewestRows = 4, kFewestOfSquares = 1 << 16;
constexpr int kNeighbours = 4;    // what one access can bring
constexpr double kThreads = 512;  // that keep a core busy
constexpr int64_t kShortDepth = 8;
constexpr int64_t kShortBlocks[] = {4, 5};  // in large groups
constexpr int kFewestThreadsOfShort = 256;
// Of what each element of a rectangle is made of, all copies together: what is longer takes drivers
// many seconds and gigabytes to compile.
constexpr size_t kMostNodes = 8192;

// A rectangle of threads with a rectangle of elements each, how well it keeps them busy, and how
// many of these a core has registers for.
struct TileShape {
  int row_threads, row_copies, column_threads, column_copies;
  double speed;
  int at_once;
};
constexpr TileShape kStagedShapes[] = {{16, 8, 16, 8, 1.0, 2},
                                       {8, 8, 16, 8, 0.97, 3},
                                       {8, 8, 8, 8, 0.9, 6},
                                       {8, 4, 16, 4, 0.6, 8},
                                       {8, 4, 8, 4, 0.5, 16}};
constexpr TileShape kDirectShapes[] = {
    {4, 4, 8, 4, 1.0, 1}, {4, 2, 8, 4, 0.8, 1}, {2, 1, 16, 2, 0.4, 1}};
constexpr double kSpeedOfFew = 0.75;  // of fewer than that

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::optional<GroupElements> Planner::plan_elements() {
  if (!enabled("vectorise") || groups_.size() != 1 || !analysis_.body().tiles.empty())
    return std::nullopt;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return std::nullopt;
  GroupElements plan;
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
    if (along < across) {
      groups_have_rows_ = std::ranges::all_of(analysis_.reductions(), [&](NodeRef reduction) {
        return analysis_.free(reduction) == common;
      });
      return std::nullopt;
    }
  }
  plan.threads = std::min<int>(
      lanes_, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max(1.0, elements)))));
  if (!enabled("unroll") || plan.axes.empty()) return plan;
  const bool whole = analysis_.size_multiple(plan.axes.back()) % kNeighbours == 0;
  // A thread that stores whole words of narrow elements need not share them with others.
  const bool narrow = most_copies(nodes_of_all_regions()) >= kNeighbours &&
                      std::ranges::any_of(plan.stores, [](NodeRef store) {
                        return byte_size(store->source(3)->dtype) < 4;
                      });
  const bool many = analysis_.reductions().empty() && elements >= kNeighbours * busy;
  if (whole && (narrow || many)) plan.neighbours = kNeighbours;
  return plan;
}

std::optional<GroupSquares> Planner::plan_squares() {
  const bool simple = enabled("stage") && enabled("vectorise") && capabilities_.stage_products &&
                      groups_.size() == 1 && analysis_.body().tiles.empty() &&
                      analysis_.reductions().empty();
  if (!simple) return std::nullopt;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return std::nullopt;
  const std::vector<size_t> axes = by_stride(common.list(), groups_[0][0], kNoAxis);
  if (axes.size() < 2 || extent(axes) < kFewestOfSquares) return std::nullopt;
  GroupSquares plan{groups_[0], {}, axes.back(), kNoAxis, {}};
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
  const auto side = static_cast<double>(GroupSquares::kSide);
  const int64_t bytes = int64_t{4} * GroupSquares::kSide * (GroupSquares::kSide + 1) *
                        static_cast<int64_t>(plan.turned.size());
  if (plan.turned.empty() || bytes > capabilities_.fast_memory_bytes / 2 ||
      GroupSquares::kThreads > capabilities_.most_group_threads ||
      extent({{plan.along}}) < side / 2 || extent({{plan.across}}) < side / 2)
    return std::nullopt;
  for (size_t axis : axes)
    if (axis != plan.along && axis != plan.across) plan.others.push_back(axis);
  return plan;
}

// Where masks say that nothing is to be added, or that no sum is looked at.
std::vector<GroupBound> Planner::group_bounds(const GroupProduct& plan) {
  std::vector<GroupBound> found;
  const bool simple = enabled("reach") && plan.sums.size() == 1 && plan.summed.size() == 1 &&
                      plan.rows.axes.size() == 1 && plan.columns.axes.size() == 1;
  if (!simple) return found;
  auto side_of = [&](NodeRef axis) -> std::optional<GroupBound::Axis> {
    const size_t number = analysis_.number(axis);
    if (number == plan.rows.axes[0]) return GroupBound::Axis::Row;
    if (number == plan.columns.axes[0]) return GroupBound::Axis::Column;
    if (number == plan.summed[0]) return GroupBound::Axis::Term;
    return std::nullopt;
  };
  auto note = [&](NodeRef condition) {
    for (const AxisBound& bound : bounds_in(condition)) {
      const auto low = side_of(bound.low), high = side_of(bound.high);
      if (low && high) found.push_back({*low, *high, bound.by});
    }
  };
  NodeRef sum = plan.sums[0], term = sum->source(0);
  if (term->op == Op::Mul)
    for (NodeRef operand : term->sources())
      if (operand->op == Op::Where && operand->source(2)->is_const() &&
          operand->source(2)->scalar().as_double() == 0)
        note(operand->source(0));
  if (plan.stores.size() == 1) {
    NodeRef value = plan.stores[0]->source(3);
    if (value->op == Op::Where && value->source(2)->is_const()) note(value->source(0));
  }
  return found;
}

std::optional<GroupProduct> Planner::plan_group_product() {
  const Region* region = enabled("tile") && enabled("vectorise") ? heaviest_sum() : nullptr;
  if (!region || iterations(analysis_, region->domain) < kFewestSteps) return std::nullopt;
  const AxisSet common = common_axes();
  const auto [rows, columns] = choose_sides(*region);
  if (rows == kNoAxis) return std::nullopt;
  const Operands operands = operands_of(*region, rows, columns);
  GroupProduct plan;
  plan.sums = region->heads;
  plan.stores = groups_[0];
  plan.rows.axes = side_axes(operands.of_rows, operands.of_columns);
  plan.columns.axes = side_axes(operands.of_columns, operands.of_rows);
  plan.summed = summed_order(*region, operands);
  AxisSet others = common;
  for (const GroupSide* side : {&plan.rows, &plan.columns})
    for (size_t axis : side->axes) others.remove(axis);
  plan.others = others.list();
  const double down = extent(plan.rows.axes), across = extent(plan.columns.axes);
  if (down < kFewestRows) return std::nullopt;

  // What takes least, where a device that is not busy takes as long as one that is.
  const bool staged = capabilities_.stage_products && enabled("stage");
  const std::span<const TileShape> shapes = staged ? std::span<const TileShape>(kStagedShapes)
                                                   : std::span<const TileShape>(kDirectShapes);
  const TileShape* best = nullptr;
  double best_cost = 1e300;
  const auto heads = static_cast<int>(plan.sums.size());
  const size_t nodes = nodes_of_all_regions();
  for (const TileShape& shape : shapes) {
    const int threads = shape.row_threads * shape.column_threads;
    const bool fits =
        threads <= capabilities_.most_group_threads &&
        heads * shape.row_copies * shape.column_copies <= capabilities_.vector_registers &&
        nodes * static_cast<size_t>(shape.row_copies * shape.column_copies) <= kMostNodes;
    if (!fits) continue;
    const auto tiles = static_cast<double>(
        ceil_div(static_cast<int64_t>(down), shape.row_threads * shape.row_copies) *
        ceil_div(static_cast<int64_t>(across), shape.column_threads * shape.column_copies));
    const double groups = tiles * extent(plan.others);
    const double work = groups * threads * shape.row_copies * shape.column_copies / shape.speed;
    const double idle =
        std::max(1.0, static_cast<double>(capabilities_.parallel_threads) / (groups * threads));
    // Some cores have a group more than others, and all wait for them; the last groups of a core
    // may leave it waiting for memory.
    const double each = groups / (static_cast<double>(capabilities_.parallel_threads) / kThreads);
    const double most = std::ceil(each), last = std::fmod(most, shape.at_once);
    const double uneven = each > 1 ? (most + last * (1 / kSpeedOfFew - 1)) / each : 1;
    const double cost = work * idle * uneven;
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = &shape;
  }
  if (!best) return std::nullopt;
  auto neighbours = [](int copies) { return copies % kNeighbours == 0 ? kNeighbours : 1; };
  plan.rows.threads = best->row_threads, plan.rows.copies = best->row_copies;
  plan.columns.threads = best->column_threads, plan.columns.copies = best->column_copies;
  plan.rows.neighbours = neighbours(best->row_copies);
  plan.columns.neighbours = neighbours(best->column_copies);
  plan.bounds = group_bounds(plan);
  if (!staged) return plan;

  for (const bool of_rows : {true, false})
    for (NodeRef operand : of_rows ? operands.of_rows : operands.of_columns) {
      const size_t last = (of_rows ? plan.rows : plan.columns).axes.back();
      AxisSet within = region->own;
      within.add(last);
      const size_t unit = axis_of_stride(operand, within, Stride::Unit, last);
      GroupOperand copied{operand, of_rows, unit != kNoAxis && unit != last};
      const bool whole =
          unit == plan.summed.back() && analysis_.size_multiple(unit) % kNeighbours == 0;
      if (copied.along_sum && whole) copied.terms_at_once = kNeighbours;
      plan.staged.push_back(copied);
    }
  plan.zeros_add_nothing = std::ranges::all_of(plan.sums, [&](NodeRef sum) {
    NodeRef term = sum->source(0);
    auto is_staged = [&](NodeRef node) {
      return std::ranges::count(plan.staged, node, &GroupOperand::node) > 0;
    };
    return term->op == Op::Mul && is_staged(term->source(0)) && is_staged(term->source(1));
  });
  auto bytes = [&](int64_t depth) {
    int64_t all = 0;
    for (const GroupOperand& operand : plan.staged) {
      const GroupSide& side = operand.of_rows ? plan.rows : plan.columns;
      all += (side.elements() + side.neighbours) * depth *
             std::max<int64_t>(4, static_cast<int64_t>(byte_size(operand.node->dtype)));
    }
    return all;
  };
  while (plan.depth > 4 && bytes(plan.depth) > capabilities_.fast_memory_bytes) plan.depth /= 2;
  // Several short blocks take fewer registers than a long one, and as few jumps. Where they come
  // out even, nothing needs to be asked of any term.
  const bool all_static = std::ranges::all_of(
      plan.summed, [&](size_t axis) { return is_static(analysis_.size(axis)); });
  const auto terms = static_cast<int64_t>(extent(plan.summed));
  if (enabled("unroll") && plan.zeros_add_nothing && all_static && plan.depth > kShortDepth &&
      terms % kShortDepth == 0) {
    if (plan.threads() >= kFewestThreadsOfShort)
      for (const int64_t blocks : kShortBlocks)
        if (plan.blocks == 1 && terms % (kShortDepth * blocks) == 0) plan.blocks = blocks;
    if (plan.blocks > 1 || terms % plan.depth != 0) plan.depth = kShortDepth;
  }
  // A whole block of plain products is short enough for that.
  plan.unroll = !enabled("unroll") ? 1 : plan.zeros_add_nothing ? plan.depth : kNeighbours;
  return plan;
}

}  // namespace anneal
