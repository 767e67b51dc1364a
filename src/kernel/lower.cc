#include "kernel/lower.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/index.h"
#include "kernel/axes.h"
#include "kernel/choices.h"
#include "kernel/emit.h"
#include "kernel/group.h"
#include "kernel/keep_rows.h"
#include "kernel/math_rules.h"
#include "kernel/one_pass.h"
#include "kernel/plan_text.h"
#include "kernel/product.h"
#include "kernel/reach.h"
#include "kernel/row_division.h"
#include "kernel/stage_factors.h"
#include "kernel/stage_rows.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

// Functions of f32 as arithmetic, narrow floats in f32.
KernelBody with_math(KernelBody body, const Capabilities& capabilities) {
  body.stores =
      lower_math(body.stores, nullptr, {}, {capabilities.scale_instruction, capabilities.f64});
  return body;
}

Program parameters_of(const KernelBody& body) {
  Program program;
  program.name = "kernel";
  for (NodeRef buffer : body.buffers) {
    const bool written = std::any_of(body.stores.begin(), body.stores.end(),
                                     [&](NodeRef store) { return store->source(0) == buffer; });
    program.buffers.push_back({buffer->dtype, written});
  }
  program.sizes = static_cast<int>(body.variables.size());
  return program;
}

NodeRef ceil_div(NodeRef size, int64_t by) {
  return index_floor_div(index_add(size, index_const(by - 1)), index_const(by));
}

// The blocks of the grid's axes that a cell works on: its number, taken apart.
class Cell {
 public:
  Cell(Analysis& analysis, Emitter& emitter, std::span<const GridAxis> grid)
      : analysis_(analysis), emitter_(emitter), grid_(grid) {}

  NodeRef count() const {
    NodeRef cells = index_const(1);
    for (const GridAxis& axis : grid_)
      cells = index_mul(cells, ceil_div(analysis_.size(axis.axis), axis.block));
    return simplify(cells);
  }

  // The range of each axis that the cell works on.
  std::vector<Emitter::Range> ranges() {
    CodeBuilder& code = emitter_.code();
    ValueId left = code.cell();
    std::vector<Emitter::Range> ranges(grid_.size());
    for (size_t i = grid_.size(); i-- > 0;) {
      const GridAxis& axis = grid_[i];
      ValueId blocks = emitter_.value(ceil_div(analysis_.size(axis.axis), axis.block), 0);
      ValueId block = i == 0 ? left : code.compute(Op::Mod, DType::Index, {left, blocks});
      if (code.is_constant(blocks, 1)) block = code.index(0);
      if (i > 0) left = code.compute(Op::FloorDiv, DType::Index, {left, blocks});
      ValueId begin = code.mul(block, code.index(axis.block));
      ranges[i] = emitter_.block(axis.axis, begin, axis.block, axis.tile.elements());
    }
    return ranges;
  }

 private:
  Analysis& analysis_;
  Emitter& emitter_;
  std::span<const GridAxis> grid_;
};

// Loops over the cell's blocks, and in them the stores.
void emit_cell(Emitter& emitter, const Analysis& analysis, const CellPlan& plan,
               std::span<const Emitter::Range> ranges) {
  std::vector<Emitter::Loop> loops;
  for (size_t i = 0; i < ranges.size(); ++i)
    loops.push_back({plan.grid[i].axis, ranges[i], plan.grid[i].tile});
  emitter.over(loops, [&] {
    auto emit = [&](const StorePlan& group) {
      if (!analysis.body().tiles.empty()) emitter.serve(group.stores);
      emitter.stores(group.stores, group.loops);
    };
    for (auto group = plan.stores.begin(); group != plan.stores.end();) {
      const size_t block = group->block_axis;
      if (block == AxisSet::kMost) {
        emit(*group++);
        continue;
      }
      const auto end = std::find_if(group, plan.stores.end(), [&](const StorePlan& other) {
        return other.block_axis != block;
      });
      // What is in a tile differs from round to round, so nothing that reads memory may leave.
      Emitter::Range range = emitter.whole(block);
      range.may_be_empty = true;
      emitter.over(block, range, Tile(), [&] { std::for_each(group, end, emit); });
      group = end;
    }
  });
}

// Threads with elements of their own, if that is how the device works and what does best there.
template <typename Describe>
std::optional<NodeRef> emit_group(Emitter& emitter, Analysis& analysis, Planner& planner,
                                  const Describe& describe) {
  if (planner.can_turn()) return std::nullopt;
  if (std::optional<GroupProduct> product = planner.plan_group_product()) {
    describe(*product);
    return emit_group_product(emitter, analysis, *product);
  }
  if (std::optional<GroupSquares> squares = planner.plan_squares()) {
    describe(*squares);
    return emit_squares(emitter, analysis, *squares);
  }
  if (std::optional<GroupElements> elements = planner.plan_elements()) {
    describe(*elements);
    return emit_elements(emitter, analysis, *elements);
  }
  return std::nullopt;
}

std::optional<ProductPlan> plan_sums(Planner& planner) {
  if (!planner.can_turn()) return std::nullopt;
  std::optional<ProductPlan> product = planner.plan_product();
  return product ? product : planner.plan_sweep();
}

}  // namespace

LoweredBody lower(const KernelBody& body, const LowerOptions& options) {
  auto enabled = [&](std::string_view name) {
    return std::find(options.disabled.begin(), options.disabled.end(), name) ==
           options.disabled.end();
  };
  KernelBody prepared = drop_trivial_axes(body);
  if (enabled("choices")) prepared = separate_choices(prepared);
  if (enabled("stage")) prepared = stage_factors(prepared);
  if (enabled("reach")) prepared = find_reach(prepared);
  if (enabled("one-pass")) prepared = one_pass(prepared, options.capabilities);
  prepared = simplify_positions(with_math(prepared, options.capabilities));
  if (enabled("split-axes")) prepared = split_axes(prepared);
  if (enabled("merge-axes")) prepared = merge_axes(prepared);
  prepared = share_axes(prepared);
  if (enabled("reciprocals")) prepared = multiply_by_reciprocals(prepared);
  // Rows are the lanes of values that were too large to be stored; of others, lanes run along them.
  const bool row_lanes = !prepared.tiles.empty();
  if (row_lanes && enabled("stage")) prepared = stage_rows(prepared);
  if (!row_lanes && enabled("stage")) prepared = keep_rows(prepared, options.capabilities);

  Analysis analysis(prepared);
  Planner planner(analysis, options.capabilities, options.disabled);
  CodeBuilder code(parameters_of(body));
  Emitter emitter(analysis, planner, code);
  LoweredBody result;
  auto describe = [&](const auto& plan) {
    if (options.describe) result.plan = to_text(plan, analysis);
  };
  if (prepared.stores.empty()) {
    result.cells = index_const(0);
  } else if (std::optional<NodeRef> cells = emit_group(emitter, analysis, planner, describe)) {
    result.cells = *cells;
  } else if (std::optional<ProductPlan> product = plan_sums(planner)) {
    describe(*product);
    Cell cell(analysis, emitter, product->grid);
    result.cells = cell.count();
    emit_product(emitter, analysis, *product, cell.ranges());
  } else {
    const CellPlan plan = row_lanes ? planner.plan_tiles() : planner.plan_cell();
    describe(plan);
    if (!prepared.tiles.empty()) emitter.place_tiles(row_lanes ? plan.grid.back().tile : Tile());
    Cell cell(analysis, emitter, plan.grid);
    result.cells = cell.count();
    emit_cell(emitter, analysis, plan, cell.ranges());
  }
  result.program = std::move(code).finish();
  return result;
}

}  // namespace anneal
