// Products on a device whose lanes are threads: a rectangle of the result for each group, whose
// operands it copies into fast memory.
#include <algorithm>
#include <cmath>

#include "body/axis_bounds.h"
#include "kernel/plan/cost.h"
#include "kernel/plan/gpu/gpu_planner.h"
#include "target/workgroup_tiles.h"

namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int neighbours_of(int copies) { return copies % kElementsOfAccess == 0 ? kElementsOfAccess : 1; }

void set_sides(WorkgroupProduct& plan, const WorkgroupTile& shape) {
  plan.rows.threads = shape.row_threads, plan.rows.copies = shape.row_copies;
  plan.columns.threads = shape.column_threads, plan.columns.copies = shape.column_copies;
  plan.rows.neighbours =
      plan.matrices.empty() ? neighbours_of(shape.row_copies) : WorkgroupProduct::kRowsOfThread;
  plan.columns.neighbours = neighbours_of(shape.column_copies);
}

}  // namespace

// Where masks say that nothing is to be added, or that no sum is looked at.
std::vector<MaskBound> GpuPlanner::mask_bounds(const WorkgroupProduct& plan) {
  std::vector<MaskBound> found;
  const bool simple = enabled("masked-range") && plan.sums.size() == 1 && plan.summed.size() == 1 &&
                      plan.rows.axes.size() == 1 && plan.columns.axes.size() == 1;
  if (!simple) return found;
  auto side_of = [&](NodeRef axis) -> std::optional<MaskBound::Axis> {
    const size_t number = analysis_.number(axis);
    if (number == plan.rows.axes[0]) return MaskBound::Axis::Row;
    if (number == plan.columns.axes[0]) return MaskBound::Axis::Column;
    if (number == plan.summed[0]) return MaskBound::Axis::Term;
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

// The factors of the products that a term adds up, where all of them are f16; they are staged as
// such. Empty: they are not.
std::vector<MatrixFactors> GpuPlanner::matrix_factors(NodeRef term, const Operands& operands,
                                                      std::vector<WorkgroupOperand>& staged) const {
  if (term->op == Op::Add) {
    std::vector<MatrixFactors> factors = matrix_factors(term->source(0), operands, staged);
    const std::vector<MatrixFactors> more = matrix_factors(term->source(1), operands, staged);
    if (factors.empty() || more.empty()) return {};
    factors.insert(factors.end(), more.begin(), more.end());
    return factors;
  }
  if (term->op != Op::Mul || term->dtype != DType::F32) return {};
  auto is_f16_of = [](NodeRef factor, const std::vector<NodeRef>& side) {
    return factor->op == Op::Cast && factor->source(0)->dtype == DType::F16 &&
           std::ranges::count(side, factor) > 0;
  };
  auto place_of = [&](NodeRef factor, bool of_rows) {
    const auto known = std::ranges::find(staged, factor->source(0), &WorkgroupOperand::node);
    const auto place = static_cast<size_t>(known - staged.begin());
    if (known == staged.end()) staged.push_back({factor->source(0), of_rows, false});
    return place;
  };
  for (size_t rows : {0, 1}) {
    NodeRef row = term->source(rows), column = term->source(1 - rows);
    if (is_f16_of(row, operands.of_rows) && is_f16_of(column, operands.of_columns))
      return {{place_of(row, true), place_of(column, false)}};
  }
  return {};
}

// How an operand is copied: along the sum, or along its side.
void GpuPlanner::choose_copying(const WorkgroupProduct& plan, const Region& region,
                                WorkgroupOperand& operand) {
  const WorkgroupSide& side = operand.of_rows ? plan.rows : plan.columns;
  const size_t last = side.axes.back();
  AxisSet within = region.own;
  within.add(last);
  const size_t unit = axis_of_stride(operand.node, within, Stride::Unit, last);
  operand.along_sum = unit != kNoAxis && unit != last;
  const bool whole = analysis_.size_multiple(plan.summed.back()) % kElementsOfAccess == 0;
  // What lies across, and must lie along for matrices, is turned while it is copied.
  const bool turned = !plan.matrices.empty() && operand.of_rows && !operand.along_sum;
  if (whole && (turned || (operand.along_sum && unit == plan.summed.back())))
    operand.terms_at_once = kElementsOfAccess;
  const int wide = plan.matrices.empty() ? side.neighbours : kElementsOfAccess;
  operand.elements_at_once = operand.terms_at_once > 1 && !turned ? 1 : wide;
}

// The depth of blocks, and how many sums pass through fast memory at once; false: it is too small.
bool GpuPlanner::choose_matrix_memory(WorkgroupProduct& plan) const {
  const int64_t units = plan.threads() / kMatrixUnit.lanes;
  for (const int64_t depth : kMatrixKTiles) {
    if (pins_.depth > 0 && pins_.depth != depth) continue;
    plan.depth = depth;
    plan.terms_of_matrices = kTermsOfMatrices;
    int64_t bytes = 0;
    for (const bool of_rows : {true, false}) {
      const WorkgroupProduct::MatrixBlock block = plan.matrix_block(of_rows);
      bytes += block.stride * block.rows * capabilities_.matrix_element_bytes;
    }
    for (const int at_once : {2, 1}) {
      if (pins_.matrices_at_once > 0 && pins_.matrices_at_once != at_once) continue;
      plan.matrices_at_once = at_once;
      if (bytes + units * at_once * WorkgroupProduct::kSumElements * 4 <=
          capabilities_.fast_memory_bytes)
        return true;
    }
  }
  return false;
}

WorkgroupProduct::MatrixBlock WorkgroupProduct::matrix_block(bool of_rows) const {
  const int64_t elements = (of_rows ? rows : columns).elements();
  const auto is_here = [&](const WorkgroupOperand& operand) { return operand.of_rows == of_rows; };
  // Units read columns fast in both ways, rows in this one alone.
  const bool by_elements = of_rows || std::ranges::find_if(staged, is_here)->along_sum;
  const int64_t length = by_elements ? depth : elements;
  return {by_elements, length, length * std::ranges::count_if(staged, is_here) + kMatrixPadding,
          by_elements ? elements : depth};
}

// Whether there is room for it; the plan has its sides then.
bool GpuPlanner::fits_tile(WorkgroupProduct& plan, const WorkgroupTile& shape) const {
  const auto heads = static_cast<int>(plan.sums.size());
  const bool fits =
      shape.threads() <= capabilities_.most_workgroup_threads &&
      heads * shape.copies() <= capabilities_.vector_registers &&
      nodes_of_all_regions() * static_cast<size_t>(shape.copies()) <= kMostNodesOfTile;
  if (!fits) return false;
  set_sides(plan, shape);
  return plan.matrices.empty() || choose_matrix_memory(plan);
}

// Steps of all threads for a term of each sum, where a device that is not busy takes as long as one
// that is.
double GpuPlanner::steps_of_tile(const WorkgroupProduct& plan, const WorkgroupTile& shape) const {
  const double down = extent(plan.rows.axes), across = extent(plan.columns.axes);
  const int threads = shape.threads();
  const auto tiles = static_cast<double>(ceil_div(static_cast<int64_t>(down), shape.rows()) *
                                         ceil_div(static_cast<int64_t>(across), shape.columns()));
  const double groups = tiles * extent(plan.others);
  const double work = groups * threads * shape.row_copies * shape.column_copies / shape.speed;
  const double idle =
      std::max(1.0, static_cast<double>(capabilities_.parallel_threads) / (groups * threads));
  // Some cores have a group more than others, and all wait for them; the last groups of a core
  // may leave it waiting for memory.
  const double each =
      groups / (static_cast<double>(capabilities_.parallel_threads) / kThreadsOfCore);
  const double most = std::ceil(each), last = std::fmod(most, shape.at_once);
  const double uneven = each > 1 ? (most + last * (1 / kSpeedOfFewTiles - 1)) / each : 1;
  return work * idle * uneven;
}

// What takes least; null: none fits.
const WorkgroupTile* GpuPlanner::cheapest_tile(WorkgroupProduct& plan,
                                               std::span<const WorkgroupTile> shapes) const {
  if (pins_.tile) return fits_tile(plan, *pins_.tile) ? pins_.tile : nullptr;
  const WorkgroupTile* best = nullptr;
  double best_cost = 1e300;
  for (const WorkgroupTile& shape : shapes) {
    if (!fits_tile(plan, shape)) continue;
    const double cost = steps_of_tile(plan, shape);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = &shape;
  }
  return best;
}

int64_t GpuPlanner::staged_bytes(const WorkgroupProduct& plan, int64_t depth) const {
  int64_t all = 0;
  for (const WorkgroupOperand& operand : plan.staged)
    all += plan.staged_stride(operand.of_rows) * depth *
           std::max<int64_t>(4, static_cast<int64_t>(byte_size(operand.node->dtype)));
  return all;
}

// How much of the sum is staged at once, in how many blocks, and how far it is unrolled; false:
// what is given is not possible.
bool GpuPlanner::choose_k_tile(WorkgroupProduct& plan) const {
  while (plan.depth > 4 && staged_bytes(plan, plan.depth) > capabilities_.fast_memory_bytes)
    plan.depth /= 2;
  // Several short blocks take fewer registers than a long one, and as few jumps. Where they come
  // out even, nothing needs to be asked of any term.
  const bool all_static = std::ranges::all_of(
      plan.summed, [&](size_t axis) { return is_static(analysis_.size(axis)); });
  const auto terms = static_cast<int64_t>(extent(plan.summed));
  const bool rounds = enabled("unroll") && plan.zeros_add_nothing && all_static;
  if (pins_.depth > 0) {
    plan.depth = pins_.depth;
    plan.blocks = std::max<int64_t>(1, pins_.blocks);
    if (staged_bytes(plan, plan.depth) > capabilities_.fast_memory_bytes) return false;
    if (plan.blocks > 1 &&
        (!rounds || plan.depth != kShortKTile || terms % (plan.depth * plan.blocks) != 0))
      return false;
  } else if (rounds && plan.depth > kShortKTile && terms % kShortKTile == 0) {
    if (plan.threads() >= kFewestThreadsOfRounds)
      for (const int64_t blocks : kShortKTilesOfRound)
        if (plan.blocks == 1 && terms % (kShortKTile * blocks) == 0) plan.blocks = blocks;
    if (plan.blocks > 1 || terms % plan.depth != 0) plan.depth = kShortKTile;
  }
  // A whole block of plain products is short enough for that.
  plan.unroll = !enabled("unroll") ? 1 : plan.zeros_add_nothing ? plan.depth : kElementsOfAccess;
  return true;
}

std::optional<WorkgroupProduct> GpuPlanner::plan_workgroup_product() {
  const Region* region = enabled("tile") && enabled("vectorise") ? heaviest_sum() : nullptr;
  if (!region || iterations(analysis_, region->domain) < kFewestSteps) return std::nullopt;
  const AxisSet common = common_axes();
  const auto [rows, columns] = choose_sides(*region);
  if (rows == kNoAxis) return std::nullopt;
  const Operands operands = operands_of(*region, rows, columns);
  WorkgroupProduct plan;
  plan.sums = region->heads;
  plan.stores = groups_[0];
  plan.rows.axes = side_axes(operands.of_rows, operands.of_columns);
  plan.columns.axes = side_axes(operands.of_columns, operands.of_rows);
  plan.summed = summed_order(*region, operands);
  AxisSet others = common;
  for (const WorkgroupSide* side : {&plan.rows, &plan.columns})
    for (size_t axis : side->axes) others.remove(axis);
  plan.others = others.list();
  if (extent(plan.rows.axes) < kFewestRowsOfWorkgroup) return std::nullopt;

  const bool staged = capabilities_.stage_products && enabled("stage");
  if (staged && enabled("split-f32-products") && capabilities_.matrix_element_bytes > 0 &&
      plan.sums.size() == 1)
    plan.matrices = matrix_factors(plan.sums[0]->source(0), operands, plan.staged);
  if (plan.matrices.empty()) plan.staged.clear();
  for (WorkgroupOperand& operand : plan.staged) choose_copying(plan, *region, operand);

  std::span<const WorkgroupTile> shapes = kDirectTiles;
  if (staged) shapes = kStagedTiles;
  if (!plan.matrices.empty()) shapes = kMatrixTiles;
  const WorkgroupTile* best = cheapest_tile(plan, shapes);
  if (!best) return std::nullopt;
  set_sides(plan, *best);
  plan.bounds = mask_bounds(plan);
  if (!plan.matrices.empty()) {
    if (!choose_matrix_memory(plan)) return std::nullopt;
    return plan;
  }
  if (!staged) return plan;

  for (const bool of_rows : {true, false})
    for (NodeRef operand : of_rows ? operands.of_rows : operands.of_columns) {
      plan.staged.push_back({operand, of_rows, false});
      choose_copying(plan, *region, plan.staged.back());
    }
  plan.zeros_add_nothing = std::ranges::all_of(plan.sums, [&](NodeRef sum) {
    NodeRef term = sum->source(0);
    auto is_staged = [&](NodeRef node) {
      return std::ranges::count(plan.staged, node, &WorkgroupOperand::node) > 0;
    };
    return term->op == Op::Mul && is_staged(term->source(0)) && is_staged(term->source(1));
  });
  if (!choose_k_tile(plan)) return std::nullopt;
  return plan;
}

}  // namespace anneal
