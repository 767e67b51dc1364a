// Reductions. Every one is a fixed tree: which terms meet follows from sizes alone. Long sums are
// made in stages, so that their rounding errors do not grow with their length.
#include <algorithm>
#include <numeric>

#include "ir/build.h"
#include "kernel/emit/emit.h"

namespace anneal {
namespace {

Op step_of(Op reduction) {
  switch (reduction) {
    case Op::SumOver: return Op::Add;
    case Op::ProdOver: return Op::Mul;
    case Op::MaxOver: return Op::Max;
    default: return Op::Min;
  }
}

// Where a reduction starts: -0.0 for sums, since -0.0 + x is x for every x.
Scalar start_of(NodeRef reduction) {
  switch (reduction->op) {
    case Op::SumOver: return Scalar::of(reduction->dtype, -0.0);
    case Op::ProdOver: return Scalar::of_int(reduction->dtype, 1);
    case Op::MaxOver: return lowest(reduction->dtype);
    default: return highest(reduction->dtype);
  }
}

// Extremes and integers are exact in any order, and products are no better in another.
bool rounds_sums(NodeRef reduction) {
  return reduction->op == Op::SumOver && is_float(reduction->dtype);
}

}  // namespace

// Those that can run in the same loop: over the same axes, in the same place, and none waits for
// another.
std::vector<NodeRef> Emitter::reductions_like(NodeRef node, CodeBuilder::Scope* scope) {
  const AxisSet own = analysis_.listed_set(node);
  CodeBuilder::Scope* serving = scope;
  while (!served_by_.contains(serving)) serving = serving->parent;
  std::vector<NodeRef> found;
  for (NodeRef other : topological_order(served_by_[serving])) {
    const bool alike = is_reduce_over(other->op) && analysis_.listed_set(other) == own &&
                       analysis_.rank(other) == analysis_.rank(node);
    if (!alike || !bound_.contains(analysis_.free(other))) continue;
    if (scope_of(analysis_.free(other)) != scope || remembered(other, 0) != kNoValue) continue;
    found.push_back(other);
  }
  return found;
}

ValueId Emitter::start_value(NodeRef reduction, int lanes) {
  return code_.constant(start_of(reduction), lanes);
}

ValueId Emitter::or_empty(NodeRef reduction, ValueId total) {
  if (reduction->op != Op::SumOver || !is_float(reduction->dtype)) return total;
  for (size_t axis : analysis_.listed_set(reduction).list()) {
    if (!analysis_.may_be_empty(axis)) continue;
    ValueId some =
        code_.compute(Op::Lt, DType::Bool, {code_.index(0), value(analysis_.size(axis), 0)});
    ValueId zero = code_.constant(Scalar::of_int(reduction->dtype, 0));
    total = code_.compute(Op::Where, reduction->dtype, {some, total, zero});
  }
  return total;
}

ValueId Emitter::step(NodeRef reduction, ValueId total, ValueId term) {
  return code_.compute(step_of(reduction->op), reduction->dtype, {total, term});
}

ValueId Emitter::total_of(NodeRef reduction, State parts, bool own_lanes) {
  while (parts.size() > 1) {
    const size_t half = (parts.size() + 1) / 2;
    for (size_t i = 0; i + half < parts.size(); ++i)
      parts[i] = step(reduction, parts[i], parts[i + half]);
    parts.resize(half);
  }
  ValueId total = own_lanes ? code_.combine(step_of(reduction->op), parts[0]) : parts[0];
  return or_empty(reduction, total);
}

ValueId Emitter::advance(const Accumulator& accumulator, Coordinate at, ValueId total) {
  NodeRef reduction = accumulator.reduction, term = reduction->source(0);
  const bool product = reduction->op == Op::SumOver && term->op == Op::Mul &&
                       is_float(term->dtype) && !staged_.contains(term);
  ValueId next;
  if (product) {
    ValueId a = value(term->source(0), at), b = value(term->source(1), at);
    next = code_.compute(Op::MulAdd, term->dtype, {a, b, total});
  } else {
    next = step(reduction, total, value(term, at));
  }
  ValueId exists = mask(analysis_.listed_set(reduction), at);
  if (exists == kNoValue) return next;
  return code_.compute(Op::Where, term->dtype, {exists, next, total});
}

// ---- stages

// A part of a range that is run in tiles of `step`, which `elements` is a multiple of.
Emitter::Range Emitter::piece(const Range& range, ValueId begin, int64_t elements, int64_t step) {
  ValueId end = code_.add(begin, code_.index(elements));
  if (range.multiple % elements == 0) return {begin, end, elements, elements, false};
  Range part{begin, code_.min(end, range.end), -1, std::gcd(elements, range.multiple), false};
  part.longest = elements;
  part.rest = range.extent >= 0 ? range.extent % step : range.rest;
  part.rest_of = range.extent >= 0 ? step : range.rest_of;
  return part;
}

// How many additions follow each other at most.
int64_t Emitter::run_of(std::span<const Loop> loops, int64_t each) {
  int64_t run = each;
  for (const Loop& loop : loops) {
    const int64_t tiles = (loop.range.longest - 1) / loop.tile.elements() + 1;
    if (tiles > kUnlimitedRun / run) return kUnlimitedRun;
    run *= std::max<int64_t>(1, tiles);
  }
  return run;
}

void Emitter::sum_over(std::span<const Loop> loops, const Sums& sums, State& state,
                       const StatefulBody& body) {
  const bool exact = std::ranges::none_of(sums.reductions, rounds_sums);
  if (exact || run_of(loops, sums.additions) <= sums.longest_run) return over(loops, state, body);
  const Loop& loop = loops[0];
  const std::span<const Loop> inner = loops.subspan(1);
  // As many tiles as may go on with the sums of those before them.
  const int64_t tiles = std::max<int64_t>(1, sums.longest_run / run_of(inner, sums.additions));
  const int64_t first_stage = tiles * loop.tile.elements();
  int64_t stage = first_stage;
  while (loop.range.longest / kLongestRun > stage) stage *= kLongestRun;
  in_stages(loop, stage, first_stage, sums, state,
            [&](State& now) { sum_over(inner, sums, now, body); });
}

void Emitter::in_stages(const Loop& loop, int64_t stage, int64_t first_stage, const Sums& sums,
                        State& state, const StatefulBody& body) {
  if (stage < first_stage) return over(loop.axis, loop.range, loop.tile, state, body, loop.tail);
  ValueId begin = code_.open_loop(loop.range.begin, loop.range.end, code_.index(stage),
                                  loop.range.may_be_empty);
  served_by_[code_.current()] = serving_;
  State carried, part;
  for (size_t i = 0; i < state.size(); ++i) {
    carried.push_back(code_.carry(state[i]));
    part.push_back(start_value(sums.of(i), code_.lanes(state[i])));
  }
  Loop inner = loop;
  inner.range = piece(loop.range, begin, stage, loop.tile.elements());
  in_stages(inner, stage / kLongestRun, first_stage, sums, part, body);
  std::vector<std::pair<ValueId, ValueId>> next;
  for (size_t i = 0; i < state.size(); ++i)
    next.emplace_back(carried[i], step(sums.of(i), carried[i], part[i]));
  code_.close_loop(next);
  state = carried;
}

// ---- all of one

void Emitter::reduce(NodeRef node) {
  const AxisSet own = analysis_.listed_set(node);
  CodeBuilder::Scope* scope = scope_of(analysis_.free(node));
  CodeBuilder::Placement placement(code_, scope);

  const std::vector<NodeRef> reductions = reductions_like(node, scope);
  std::vector<Accumulator> accumulators;
  std::vector<NodeRef> bodies, kinds;
  AxisSet around;
  for (NodeRef each : reductions) {
    for (Coordinate at : coordinates(analysis_.free(each))) {
      accumulators.push_back({each, at});
      kinds.push_back(each);
    }
    for (size_t axis : (analysis_.free(each) & bound_).list())
      if (bindings_[axis].tile.lanes > 1) around.add(axis);
    bodies.push_back(each->source(0));
  }
  const std::vector<AxisLoop> loops =
      plan_.reduction(reductions[0]).loops(!around.empty(), static_cast<int>(accumulators.size()));
  const size_t count = accumulators.size();
  int copies = 1, own_lanes = 1;
  size_t copied = own.list()[0];
  for (const AxisLoop& loop : loops) {
    own_lanes = std::max(own_lanes, loop.tile.lanes);
    if (loop.tile.copies == 1) continue;
    copies = loop.tile.copies;
    copied = loop.axis;
  }

  auto lanes_for = [&](NodeRef reduction) {
    return std::max(own_lanes, lanes_of(analysis_.free(reduction)));
  };
  State state;
  for (int copy = 0; copy < copies; ++copy)
    for (const Accumulator& each : accumulators)
      state.push_back(start_value(each.reduction, lanes_for(each.reduction)));

  std::vector<Loop> nest;
  for (const AxisLoop& loop : loops) nest.push_back({loop.axis, whole(loop.axis), loop.tile});
  {
    Serving serving(*this, bodies);
    sum_over(nest, {kinds}, state, [&](State& now) {
      const Binding& binding = bindings_[copied];
      for (int copy = 0; copy < binding.tile.copies; ++copy) {
        Coordinate of_copy = 0;
        if (binding.slot >= 0) of_copy = static_cast<Coordinate>(copy) << binding.slot * kSlotBits;
        for (size_t i = 0; i < count; ++i) {
          ValueId& total = now[static_cast<size_t>(copy) * count + i];
          total = advance(accumulators[i], accumulators[i].at | of_copy, total);
        }
      }
    });
  }

  for (size_t i = 0; i < count; ++i) {
    NodeRef reduction = accumulators[i].reduction;
    State parts;
    for (size_t at = i; at < state.size(); at += count) parts.push_back(state[at]);
    remember(reduction, accumulators[i].at, total_of(reduction, std::move(parts), own_lanes > 1));
  }
}

}  // namespace anneal
