#include "kernel/lower.h"

#include <algorithm>
#include <numeric>

#include "ir/build.h"
#include "ir/index.h"
#include "kernel/axes.h"
#include "kernel/emit.h"
#include "kernel/stage_rows.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

// Sums of narrow floats run in f32 and round once, at the end.
KernelBody widen_reductions(KernelBody body) {
  NodeMap<NodeRef> images;
  for (NodeRef node : topological_order(body.stores)) {
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(images[source]);
    const bool narrow =
        is_reduce_over(node->op) && is_float(node->dtype) && byte_size(node->dtype) < 4;
    if (!narrow) {
      images[node] = with_sources(node, sources);
      continue;
    }
    sources[0] = make_cast(sources[0], DType::F32);
    images[node] = make_cast(make(node->op, sources), node->dtype);
  }
  for (NodeRef& store : body.stores) store = images[store];
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
  Cell(Analysis& analysis, Emitter& emitter, const CellPlan& plan)
      : analysis_(analysis), emitter_(emitter), plan_(plan) {}

  NodeRef count() const {
    NodeRef cells = index_const(1);
    for (const GridAxis& axis : plan_.grid)
      cells = index_mul(cells, ceil_div(analysis_.size(axis.axis), axis.block));
    return simplify(cells);
  }

  void emit() {
    CodeBuilder& code = emitter_.code();
    ValueId left = code.cell();
    ranges_.resize(plan_.grid.size());
    for (size_t i = plan_.grid.size(); i-- > 0;) {
      const GridAxis& axis = plan_.grid[i];
      ValueId blocks = emitter_.value(ceil_div(analysis_.size(axis.axis), axis.block), 0);
      ValueId block = i == 0 ? left : code.compute(Op::Mod, DType::Index, {left, blocks});
      if (i > 0) left = code.compute(Op::FloorDiv, DType::Index, {left, blocks});
      ranges_[i] = range_of(axis, block);
    }
    loops(0);
  }

 private:
  Emitter::Range range_of(const GridAxis& axis, ValueId block) {
    CodeBuilder& code = emitter_.code();
    ValueId begin = code.mul(block, code.index(axis.block));
    ValueId end = code.add(begin, code.index(axis.block));
    const int64_t multiple = analysis_.size_multiple(axis.axis);
    if (multiple % axis.block == 0) return {begin, end, axis.block, axis.block, false};
    end = code.min(end, emitter_.value(analysis_.size(axis.axis), 0));
    return {begin, end, -1, std::gcd(axis.block, multiple), false};
  }

  void loops(size_t depth) {
    if (depth == plan_.grid.size()) {
      for (const StorePlan& group : plan_.stores) {
        if (!analysis_.body().tiles.empty()) emitter_.serve(group.stores);
        emitter_.stores(group.stores, group.loops);
      }
      return;
    }
    Emitter::State none;
    emitter_.over(plan_.grid[depth].axis, ranges_[depth], plan_.grid[depth].tile, none,
                  [&](Emitter::State&) { loops(depth + 1); });
  }

  Analysis& analysis_;
  Emitter& emitter_;
  const CellPlan& plan_;
  std::vector<Emitter::Range> ranges_;
};

}  // namespace

LoweredBody lower(const KernelBody& body, const LowerOptions& options) {
  auto enabled = [&](std::string_view name) {
    return std::find(options.disabled.begin(), options.disabled.end(), name) ==
           options.disabled.end();
  };
  KernelBody prepared = simplify_positions(drop_trivial_axes(widen_reductions(body)));
  if (enabled("split-axes")) prepared = split_axes(prepared);
  if (enabled("merge-axes")) prepared = merge_axes(prepared);
  prepared = share_axes(prepared);
  const bool tiled = !prepared.tiles.empty();
  if (tiled && enabled("stage")) prepared = stage_rows(prepared);

  Analysis analysis(prepared);
  Planner planner(analysis, options.capabilities, options.disabled);
  CodeBuilder code(parameters_of(body));
  Emitter emitter(analysis, planner, code);
  const CellPlan plan = tiled ? planner.plan_tiles() : planner.plan_cell();
  if (tiled) emitter.place_tiles(plan.grid.back().tile);
  Cell cell(analysis, emitter, plan);
  LoweredBody result;
  result.cells = prepared.stores.empty() ? index_const(0) : cell.count();
  cell.emit();
  result.program = std::move(code).finish();
  return result;
}

}  // namespace anneal
