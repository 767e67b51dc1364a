#include <fmt/format.h>

#include "ir/node.h"
#include "kernel/plan/plan_text.h"

namespace anneal {
namespace {

// An axis as its number and size: "2:128", "0:?" where the size is symbolic.
std::string axis_text(size_t axis, const Analysis& analysis) {
  return analysis.is_static_size(axis)
             ? fmt::format("{}:{}", axis, static_value(analysis.size(axis)))
             : fmt::format("{}:?", axis);
}

std::string axes_text(std::span<const size_t> axes, const Analysis& analysis) {
  std::string text;
  for (size_t axis : axes) text += (text.empty() ? "" : ",") + axis_text(axis, analysis);
  return text.empty() ? "-" : text;
}

// Lanes by copies, and how many of these are neighbours: "8x4", "32x8n4".
std::string tile_text(const Tile& tile) {
  std::string text = fmt::format("{}x{}", tile.lanes, tile.copies);
  if (tile.neighbours > 1) text += fmt::format("n{}", tile.neighbours);
  return text;
}

std::string grid_text(std::span<const GridAxis> grid, const Analysis& analysis) {
  std::string text;
  for (const GridAxis& axis : grid)
    text += fmt::format("{}{}/{}*{}", text.empty() ? "" : " ", axis_text(axis.axis, analysis),
                        axis.block, tile_text(axis.tile));
  return text;
}

std::string loops_text(size_t count, std::span<const AxisLoop> loops, const Analysis& analysis) {
  std::string text = fmt::format("{}", count);
  for (const AxisLoop& loop : loops)
    text += fmt::format(" {}*{}", axis_text(loop.axis, analysis), tile_text(loop.tile));
  return text;
}

std::string store_text(const StorePlan& plan, const Analysis& analysis) {
  std::string text = loops_text(plan.stores.size(), plan.loops, analysis);
  if (plan.block_axis != AxisSet::kMost) text += " blocks " + axis_text(plan.block_axis, analysis);
  return text;
}

std::string side_text(const WorkgroupSide& side, const Analysis& analysis) {
  std::string text =
      fmt::format("{}*{}x{}", axes_text(side.axes, analysis), side.threads, side.copies);
  if (side.neighbours > 1) text += fmt::format("n{}", side.neighbours);
  return text;
}

std::string operand_text(const StagedOperand& operand, const Analysis& analysis) {
  std::string text = fmt::format("{} inner {}", operand.of_rows ? "rows" : "columns",
                                 axis_text(operand.inner, analysis));
  if (operand.turned != AxisSet::kMost)
    text += " transposed " + axis_text(operand.turned, analysis);
  if (operand.flat > 0) text += fmt::format(" flat {}", operand.flat);
  if (operand.together > 1) text += fmt::format(" together {}", operand.together);
  return text;
}

std::string operand_text(const WorkgroupOperand& operand) {
  return fmt::format("{}{} {}x{}", operand.of_rows ? "rows" : "columns",
                     operand.along_sum ? " along k" : "", operand.terms_at_once,
                     operand.elements_at_once);
}

std::string kind_text(const CellPlan& plan, const Analysis& analysis) {
  std::string text = fmt::format("cell grid[{}]", grid_text(plan.grid, analysis));
  for (const StorePlan& stores : plan.stores)
    text += fmt::format(" store[{}]", store_text(stores, analysis));
  return text;
}

std::string kind_text(const ProductPlan& plan, const Analysis& analysis) {
  std::string text =
      fmt::format("product grid[{}] rows[{}*{}] columns[{}*{}] k[{}] k-tile {} step {}",
                  grid_text(plan.grid, analysis), axes_text(plan.rows.axes, analysis),
                  tile_text(plan.rows.tile), axes_text(plan.columns.axes, analysis),
                  tile_text(plan.columns.tile), axes_text(plan.summed, analysis), plan.depth,
                  tile_text(plan.step));
  for (const StagedOperand& operand : plan.staged)
    text += fmt::format(" stage[{}]", operand_text(operand, analysis));
  if (plan.through_memory) text += " sums-in-memory";
  if (plan.flat_sums) text += " flat-sums";
  if (plan.flat_stores) text += " flat-stores";
  return text;
}

std::string kind_text(const WorkgroupElements& plan, const Analysis& analysis) {
  return fmt::format("elements {} stores {}*{}x{}n{}", plan.stores.size(),
                     axes_text(plan.axes, analysis), plan.threads, plan.copies, plan.neighbours);
}

std::string kind_text(const TransposeTile& plan, const Analysis& analysis) {
  return fmt::format("transpose {} stores {} loads outer[{}] along {} across {}",
                     plan.stores.size(), plan.turned.size(), axes_text(plan.others, analysis),
                     axis_text(plan.along, analysis), axis_text(plan.across, analysis));
}

std::string kind_text(const WorkgroupProduct& plan, const Analysis& analysis) {
  std::string text = fmt::format(
      "group-product outer[{}] rows[{}] columns[{}] k[{}] k-tile {}x{} "
      "unroll {}",
      axes_text(plan.others, analysis), side_text(plan.rows, analysis),
      side_text(plan.columns, analysis), axes_text(plan.summed, analysis), plan.depth, plan.blocks,
      plan.unroll);
  for (const WorkgroupOperand& operand : plan.staged)
    text += fmt::format(" stage[{}]", operand_text(operand));
  if (plan.zeros_add_nothing) text += " zero-padded";
  if (!plan.bounds.empty()) text += fmt::format(" bounds {}", plan.bounds.size());
  if (!plan.matrices.empty())
    text += fmt::format(" matrix-unit {} products, {} terms, {} at once", plan.matrices.size(),
                        plan.terms_of_matrices, plan.matrices_at_once);
  return text;
}

}  // namespace

std::string summary(const KernelPlan& plan, const Analysis& analysis) {
  std::string text =
      std::visit([&](const auto& kind) { return kind_text(kind, analysis); }, plan.kind);
  if (std::holds_alternative<CellPlan>(plan.kind))
    for (const ReductionPlan& part : plan.reductions)
      text += fmt::format(" reduce[{}]", loops_text(part.reductions.size(), part.alone, analysis));
  return text;
}

}  // namespace anneal
