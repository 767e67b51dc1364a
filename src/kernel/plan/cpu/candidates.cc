// Other ways to run a body on a CPU than the planner's own, for those who measure: products differ
// by the register tile, the k tile and the blocks of cells, other loops by the blocks alone. What a
// candidate is made of is given, and the rest chosen as ever, so that all of them compute the same.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "kernel/plan/cost.h"
#include "kernel/plan/cpu/cpu_planner.h"
#include "kernel/plan/plan_check.h"
#include "kernel/plan/plan_text.h"

namespace anneal {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_summed_in_rows(const ProductPlan& plan) { return !plan.rows.axes.empty(); }

}  // namespace

// ---- what plans take

double CpuPlanner::imbalance(std::span<const GridAxis> grid) const {
  double cells = 1;
  for (const GridAxis& axis : grid)
    cells *= static_cast<double>(ceil_div(analysis_.expected_size(axis.axis), axis.block));
  const double each = cells / capabilities_.cores;
  return std::ceil(each) / each;
}

double CpuPlanner::product_nanoseconds(const ProductPlan& plan) {
  const auto rounded = [](double size, int step) { return std::ceil(size / step) * step; };
  const double rows = rounded(extent(plan.rows.axes), plan.rows.tile.copies);
  const double vectors =
      rounded(std::ceil(extent(plan.columns.axes) / lanes_), plan.columns.tile.copies);
  const auto heads = static_cast<double>(plan.sums.size());
  double others = 1, row_blocks = 1, column_blocks = 1;
  for (const GridAxis& axis : plan.grid) {
    const auto size = static_cast<double>(analysis_.expected_size(axis.axis));
    const double blocks = std::ceil(size / static_cast<double>(axis.block));
    if (std::ranges::count(plan.rows.axes, axis.axis) > 0)
      row_blocks *= blocks;
    else if (std::ranges::count(plan.columns.axes, axis.axis) > 0)
      column_blocks *= blocks;
    else
      others *= size;
  }
  const double sums = heads * others * rows * vectors;
  double steps =
      sums * extent(plan.summed) *
      tile_cost({plan.rows.tile.copies, plan.columns.tile.copies, static_cast<int>(heads), true});
  for (const StagedOperand& staged : plan.staged) {
    const ProductSide& side = staged.of_rows ? plan.rows : plan.columns;
    steps += pack_cost(staged.node, side.axes.back(), staged.of_rows, plan.summed) *
             (staged.of_rows ? column_blocks : row_blocks);
  }
  if (plan.through_memory) {
    const double deep = static_cast<double>(analysis_.expected_size(plan.summed[0]));
    const double k_tiles = plan.depth == 0 ? 1 : std::ceil(deep / static_cast<double>(plan.depth));
    steps += kSumThroughMemory * sums * k_tiles;
  }
  return steps / kStepsPerNanosecond / capabilities_.cores * imbalance(plan.grid);
}

double CpuPlanner::cell_nanoseconds(const CellPlan& plan, bool row_lanes) {
  if (groups_.empty()) return 0;
  const size_t vector_axis = row_lanes ? plan.grid.back().axis : choose_vector_axis(common_axes());
  double cells = 1;
  for (const GridAxis& axis : plan.grid)
    cells *= static_cast<double>(ceil_div(analysis_.expected_size(axis.axis), axis.block));
  return (work_of(vector_axis).nanoseconds + cells * kStartOfCell) / capabilities_.cores *
         imbalance(plan.grid);
}

double CpuPlanner::nanoseconds(const KernelPlan& plan) {
  if (const auto* product = std::get_if<ProductPlan>(&plan.kind);
      product && is_summed_in_rows(*product))
    return product_nanoseconds(*product);
  if (const auto* cell = std::get_if<CellPlan>(&plan.kind))
    return cell_nanoseconds(*cell, plan.row_lanes);
  return work_of(choose_vector_axis(common_axes())).nanoseconds / capabilities_.cores;
}

// ---- others than the one that was chosen

ProductPins CpuPlanner::pins_of(const ProductPlan& plan) {
  ProductPins pins{plan.rows.tile.copies, plan.columns.tile.copies, plan.depth};
  for (const GridAxis& axis : plan.grid) pins.blocks.push_back(axis.block);
  return pins;
}

// What holds of every plan that plan_product() makes with pins, besides what follows from them.
std::string CpuPlanner::why_not_legal(const ProductPlan& plan) {
  if (const int all = registers({.kind = plan}); all > capabilities_.vector_registers)
    return fmt::format("it fills {} registers of {}", all, capabilities_.vector_registers);
  if (plan.rows.tile.copies > kMostRowCopies || plan.columns.tile.copies > kMostVectors)
    return "its register tile is too large";
  if (plan.depth > kDeepestOfAll) return fmt::format("its k tile is {}", plan.depth);
  for (const GridAxis& axis : plan.grid) {
    const ProductSide* side = nullptr;
    for (const ProductSide* each : {&plan.rows, &plan.columns})
      if (std::ranges::count(each->axes, axis.axis) > 0) side = each;
    if (!side && axis.block != 1) return "a cell has several of an axis outside of the product";
    if (!side) continue;
    if (axis.block >
        std::max<int64_t>(2 * analysis_.expected_size(axis.axis), 2 * side->tile.elements()))
      return fmt::format("a block has {} elements of {}", axis.block,
                         analysis_.expected_size(axis.axis));
    // Inner axes are whole, or those outside of them come one by one.
    const size_t place =
        static_cast<size_t>(std::ranges::find(side->axes, axis.axis) - side->axes.begin());
    for (size_t inner = place + 1; inner < side->axes.size(); ++inner)
      if (axis.block > 1 &&
          (plan.grid_axis(side->axes[inner]).block < analysis_.expected_size(side->axes[inner]) ||
           (!is_static(analysis_.size(axis.axis)) && place > 0)))
        return "a block is no rectangle of whole axes";
  }
  if (const int64_t bytes = cell_memory_bytes({.kind = plan}, analysis_);
      bytes > kMostMemory * capabilities_.fast_memory_bytes)
    return fmt::format("it takes {} bytes of fast memory", bytes);
  return "";
}

std::string CpuPlanner::why_not(const KernelPlan& plan, bool row_lanes) {
  if (std::string problem = verify(plan, analysis_); !problem.empty()) return problem;
  KernelPlan own = this->plan(row_lanes);
  const auto* product = std::get_if<ProductPlan>(&plan.kind);
  if (product && is_summed_in_rows(*product)) {
    const std::optional<ProductPlan> made = plan_product(pins_of(*product));
    if (!made) return "the body is no product";
    if (std::string problem = why_not_legal(*made); !problem.empty()) return problem;
    own.kind = *made;
  }
  const auto* cells = std::get_if<CellPlan>(&plan.kind);
  auto* own_cells = std::get_if<CellPlan>(&own.kind);
  if (cells && own_cells && has_free_blocks() && cells->grid.size() == own_cells->grid.size())
    for (size_t i = 0; i < cells->grid.size(); ++i)
      if (cells->grid[i].block <= most_block(own_cells->grid[i]))
        own_cells->grid[i].block = cells->grid[i].block;
  return to_text(plan, analysis_) == to_text(own, analysis_)
             ? ""
             : "parts of it do not follow from the others";
}

std::vector<ProductPins> CpuPlanner::product_variants(const ProductPlan& chosen) {
  std::vector<ProductPins> variants;
  std::set<int64_t> depths{chosen.depth};
  if (chosen.depth > 0) {
    const int64_t deep = analysis_.expected_size(chosen.summed[0]);
    for (const int64_t depth : {chosen.depth / 2, chosen.depth * 2, ceil_div(deep, 2), deep})
      if (depth >= kFewestSums && depth <= std::min(deep, kDeepestOfAll)) depths.insert(depth);
  }
  const auto heads = static_cast<int>(chosen.sums.size());
  for (int vectors = 1; vectors <= kMostVectors; ++vectors)
    for (int rows = 1; rows <= kMostRowCopies; ++rows) {
      const bool own = rows == chosen.rows.tile.copies && vectors == chosen.columns.tile.copies;
      if (!own && heads * rows * vectors < kFewestSums) continue;
      for (const int64_t depth : depths) variants.push_back({rows, vectors, depth});
    }
  // Larger and smaller cells, with the tile and the depth that were chosen.
  auto elements = [&](const ProductSide& side) {
    int64_t all = 1;
    for (size_t axis : side.axes) all *= chosen.grid_axis(axis).block;
    return all;
  };
  const int64_t rows = elements(chosen.rows), columns = elements(chosen.columns);
  for (const int64_t down : {rows / 2, rows, rows * 2})
    for (const int64_t across : {columns / 2, columns, columns * 2})
      if (down > 0 && across > 0)
        variants.push_back(
            {chosen.rows.tile.copies, chosen.columns.tile.copies, chosen.depth, {}, down, across});
  return variants;
}

void CpuPlanner::add_products(std::vector<PlanCandidate>& all, bool row_lanes) {
  const ProductPlan own = std::get<ProductPlan>(all[0].plan.kind);
  std::set<std::string> known{to_text(all[0].plan, analysis_)};
  for (const ProductPins& pins : product_variants(own)) {
    const std::optional<ProductPlan> made = plan_product(pins);
    if (!made || !why_not_legal(*made).empty()) continue;
    PlanCandidate candidate{all[0].plan};
    candidate.plan.kind = *made;
    candidate.nanoseconds = product_nanoseconds(*made);
    if (!known.insert(to_text(candidate.plan, analysis_)).second) continue;
    if (why_not(candidate.plan, row_lanes).empty()) all.push_back(std::move(candidate));
  }
}

// Rows of tiles have the block that their tiles have room for.
bool CpuPlanner::has_free_blocks() const { return analysis_.body().tiles.empty(); }

// A cell with all of the axis.
int64_t CpuPlanner::most_block(const GridAxis& axis) const {
  const int64_t step = axis.tile.elements();
  return ceil_div(std::max<int64_t>(1, analysis_.expected_size(axis.axis)), step) * step;
}

void CpuPlanner::add_cells(std::vector<PlanCandidate>& all, bool row_lanes) {
  const CellPlan own = std::get<CellPlan>(all[0].plan.kind);
  for (size_t i = 0; i < own.grid.size(); ++i) {
    const int64_t step = own.grid[i].tile.elements(), tiles = own.grid[i].block / step;
    for (const int64_t wanted : {tiles / 4, tiles / 2, tiles * 2, tiles * 4}) {
      const int64_t block = wanted * step;
      if (block < step || block > most_block(own.grid[i])) continue;
      PlanCandidate candidate{all[0].plan};
      auto& plan = std::get<CellPlan>(candidate.plan.kind);
      plan.grid[i].block = block;
      candidate.nanoseconds = cell_nanoseconds(plan, row_lanes);
      all.push_back(std::move(candidate));
    }
  }
}

std::vector<PlanCandidate> CpuPlanner::candidates(bool row_lanes) {
  std::vector<PlanCandidate> all;
  all.push_back({plan(row_lanes)});
  all[0].nanoseconds = nanoseconds(all[0].plan);
  const auto* product = std::get_if<ProductPlan>(&all[0].plan.kind);
  if (product && is_summed_in_rows(*product) && enabled("unroll"))
    add_products(all, row_lanes);
  else if (!product && has_free_blocks())
    add_cells(all, row_lanes);
  std::stable_sort(all.begin() + 1, all.end(), [](const PlanCandidate& a, const PlanCandidate& b) {
    return a.nanoseconds < b.nanoseconds;
  });
  return all;
}

}  // namespace anneal
