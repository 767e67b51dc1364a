#include "kernel/lower.h"

#include <algorithm>

#include <anneal/error.h>

#include "ir/build.h"
#include "ir/index.h"
#include "kernel/body/axes.h"
#include "kernel/body/cache_rows.h"
#include "kernel/body/gather_rows.h"
#include "kernel/body/hoist_prologue.h"
#include "kernel/body/masked_range.h"
#include "kernel/body/math_rules.h"
#include "kernel/body/online_reduction.h"
#include "kernel/body/row_division.h"
#include "kernel/body/unswitch_axes.h"
#include "kernel/emit/emit.h"
#include "kernel/emit/emit_workgroup.h"
#include "kernel/emit/product.h"
#include "kernel/plan/plan.h"
#include "kernel/plan/plan_check.h"
#include "kernel/plan/plan_text.h"
#include "kernel/planned_body.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

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

// Each answers how many cells there are.
NodeRef emit_kind(Emitter& emitter, Analysis& analysis, const CellPlan& plan) {
  if (!analysis.body().tiles.empty())
    emitter.place_tiles(emitter.plan().row_lanes ? plan.grid.back().tile : Tile());
  Cell cell(analysis, emitter, plan.grid);
  NodeRef cells = cell.count();
  emit_cell(emitter, analysis, plan, cell.ranges());
  return cells;
}
NodeRef emit_kind(Emitter& emitter, Analysis& analysis, const ProductPlan& plan) {
  Cell cell(analysis, emitter, plan.grid);
  NodeRef cells = cell.count();
  emit_product(emitter, analysis, plan, cell.ranges());
  return cells;
}
NodeRef emit_kind(Emitter& emitter, Analysis& analysis, const WorkgroupElements& plan) {
  return emit_elements(emitter, analysis, plan);
}
NodeRef emit_kind(Emitter& emitter, Analysis& analysis, const TransposeTile& plan) {
  return emit_squares(emitter, analysis, plan);
}
NodeRef emit_kind(Emitter& emitter, Analysis& analysis, const WorkgroupProduct& plan) {
  return emit_group_product(emitter, analysis, plan);
}

NodeRef emit(const KernelPlan& plan, Analysis& analysis, CodeBuilder& code) {
  Emitter emitter(analysis, plan, code);
  return std::visit([&](const auto& kind) { return emit_kind(emitter, analysis, kind); },
                    plan.kind);
}

// ---- passes over the body

// Equal within a process where nothing changed.
uint64_t fingerprint(const PreparedBody& state) {
  const KernelBody& body = state.body;
  uint64_t hash = body.axes.size();
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15; };
  for (const std::vector<NodeRef>* list :
       {&body.stores, &body.buffers, &body.tiles, &body.tile_axes, &body.block_axes})
    for (NodeRef node : *list) add(node->key.low);
  for (const Axis& axis : body.axes) add(axis.variable->key.low);
  add(body.masked_ranges.size());
  return hash;
}

template <KernelBody (*function)(const KernelBody&)>
void apply(PreparedBody& state, const LowerOptions&) {
  state.body = function(state.body);
}
template <KernelBody (*function)(const KernelBody&, const Capabilities&)>
void apply(PreparedBody& state, const LowerOptions& options) {
  state.body = function(state.body, options.capabilities);
}

// Functions of f32 as arithmetic, narrow floats in f32.
void write_out_math(PreparedBody& state, const LowerOptions& options) {
  const Capabilities& capabilities = options.capabilities;
  state.body.stores = lower_math(state.body.stores, nullptr, {},
                                 {capabilities.scale_instruction, capabilities.f64});
}

}  // namespace

const PassTable<PreparedBody, LowerOptions>& body_passes() {
  constexpr bool kRequired = true;
  static const PassTable<PreparedBody, LowerOptions> table{
      "kernel body",
      "axes",
      {
          {"drop-trivial-axes", apply<drop_trivial_axes>, nullptr, {}, kRequired},
          {"unswitch-axes", apply<unswitch_axes>},
          {"hoist-prologue", apply<hoist_prologues>, nullptr, "stage"},
          {"masked-range", apply<find_masked_ranges>},
          {"online-reduction", apply<online_reductions>},
          {"math", write_out_math, nullptr, {}, kRequired},
          {"simplify-positions", apply<simplify_positions>, nullptr, {}, kRequired},
          {"split-axes", apply<split_axes>},
          {"merge-axes", apply<merge_axes>},
          {"share-axes", apply<share_axes>, nullptr, {}, kRequired},
          {"reciprocals",
           apply<multiply_by_reciprocals>,
           nullptr,
           {},
           !kRequired,
           reciprocal_rules()},
          {"row-lanes",
           [](PreparedBody& state, const LowerOptions&) {
             state.row_lanes = !state.body.tiles.empty();
           },
           nullptr,
           {},
           kRequired},
          {"gather-rows", apply<gather_rows>,
           [](const PreparedBody& state, const LowerOptions&) { return state.row_lanes; }, "stage"},
          {"cache-rows", apply<cache_rows>,
           [](const PreparedBody& state, const LowerOptions&) { return !state.row_lanes; },
           "stage"},
      },
      [](const PreparedBody& state) { return to_text(state.body); },
      [](const PreparedBody& state) { return verify(state.body, Stores::Several); },
      fingerprint,
      [](const PreparedBody& state) {
        return StateSize{static_cast<int64_t>(topological_order(state.body.stores).size()),
                         static_cast<int64_t>(state.body.axes.size())};
      }};
  return table;
}

PreparedBody prepare(const KernelBody& body, const LowerOptions& options) {
  PreparedBody state{body};
  run_passes(body_passes(), state, options);
  return state;
}

namespace {

std::vector<std::string> disabled_choices(const LowerOptions& options) {
  std::vector<std::string> disabled = options.disabled;
  const std::vector<std::string>& everywhere = pass_requests().disabled;
  disabled.insert(disabled.end(), everywhere.begin(), everywhere.end());
  return disabled;
}

// The plan that was given, or the planner's own.
KernelPlan plan_of(Planner& planner, const Analysis& analysis, bool row_lanes,
                   const LowerOptions& options, std::string& refused) {
  if (!options.plan.empty()) {
    const std::optional<KernelPlan> given = parse_plan(options.plan, analysis, refused);
    if (given) refused = planner.why_not(*given, row_lanes);
    if (refused.empty()) return *given;
  }
  KernelPlan plan = planner.plan(row_lanes);
  if (const std::string problem = verify(plan, analysis); !problem.empty())
    throw InternalError("a plan is not valid: " + problem);
  return plan;
}

}  // namespace

std::vector<PlanChoice> plan_choices(const KernelBody& body, const LowerOptions& options) {
  const PreparedBody state = prepare(body, options);
  if (state.body.stores.empty()) return {};
  Analysis analysis(state.body);
  Planner planner(analysis, options.capabilities, disabled_choices(options));
  std::vector<PlanChoice> choices;
  for (const PlanCandidate& each : planner.candidates(state.row_lanes))
    choices.push_back({to_text(each.plan, analysis), summary(each.plan, analysis), each.nanoseconds,
                       registers(each.plan), cell_memory_bytes(each.plan, analysis)});
  return choices;
}

PlannedBody plan_body(const KernelBody& body, const LowerOptions& options) {
  PlannedBody planned{body, prepare(body, options)};
  planned.analysis = std::make_unique<Analysis>(planned.prepared.body);
  if (planned.is_empty()) return planned;
  PassRun run("plan", "plan");
  run.begin();
  Planner planner(*planned.analysis, options.capabilities, disabled_choices(options));
  planned.plan =
      plan_of(planner, *planned.analysis, planned.prepared.row_lanes, options, planned.refused);
  run.end();
  run.finish({});
  return planned;
}

LoweredBody lower(PlannedBody& planned, bool describe) {
  PassRun run("plan", "emit", "instructions");
  run.begin();
  LoweredBody result;
  result.refused = planned.refused;
  CodeBuilder code(parameters_of(planned.body));
  if (planned.is_empty()) {
    result.cells = index_const(0);
  } else {
    if (describe) result.plan = summary(planned.plan, *planned.analysis);
    result.cells = emit(planned.plan, *planned.analysis, code);
  }
  result.program = std::move(code).finish();
  run.end();
  PassRun::Outcome outcome;
  if (run.wants_sizes())
    outcome = {true, {}, {0, static_cast<int64_t>(result.program.code.size())}, {}, {}};
  run.finish(outcome);
  return result;
}

LoweredBody lower(const KernelBody& body, const LowerOptions& options) {
  PlannedBody planned = plan_body(body, options);
  return lower(planned, options.describe);
}

}  // namespace anneal
