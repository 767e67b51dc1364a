// Rows that one cell goes through several times: what is kept of a row is reduced while it is
// stored, and the next row comes nearer meanwhile. Otherwise each row waits for memory first, and
// memory waits for arithmetic then.
#include "body/match_axes.h"
#include "kernel/emit/emit.h"
#include "kernel/plan/cost.h"

namespace anneal {
std::vector<NodeRef> Emitter::reductions_of_row(NodeRef store) {
  NodeRef tile = store->source(0), own = store->sources().back();
  std::vector<NodeRef> found;
  for (NodeRef reduction : analysis_.reductions()) {
    std::span<const NodeRef> over = Analysis::listed(reduction);
    NodeRef term = reduction->source(0);
    if (over.size() != 1 || term->op != Op::Load || term->source(0) != tile) continue;
    const bool all =
        term->source(1) == over[0] && is_always(term->source(2)) &&
        analysis_.size(analysis_.number(over[0])) == analysis_.size(analysis_.number(own));
    if (all) found.push_back(reduction);
  }
  return found;
}

void Emitter::keep_row(NodeRef store, const AxisLoop& loop) {
  const std::vector<NodeRef> reductions = reductions_of_row(store);
  const size_t count = reductions.size();
  State state;
  for (int copy = 0; copy < loop.tile.copies; ++copy)
    for (NodeRef reduction : reductions) state.push_back(start_value(reduction, loop.tile.lanes));

  const Loop row{loop.axis, whole(loop.axis), loop.tile};
  auto keep = [&](State& totals) {
    const std::vector<NextRow> next = next_rows({&store, 1});
    const AxisSet axes = analysis_.listed_set(store);
    size_t at_total = 0;
    for (Coordinate at : coordinates(axes)) {
      ValueId kept = value(store->source(3), at), exists = mask(axes, at);
      this->store(store, at);
      fetch(next, at);
      for (NodeRef reduction : reductions) {
        ValueId& total = totals[at_total++];
        ValueId more = step(reduction, total, kept);
        if (exists != kNoValue)
          more = code_.compute(Op::Where, reduction->dtype, {exists, more, total});
        total = more;
      }
    }
  };
  if (reductions.empty()) return over(loop.axis, row.range, loop.tile, state, keep);
  sum_over({&row, 1}, {reductions}, state, keep);

  for (size_t i = 0; i < count; ++i) {
    State parts;
    for (size_t at = i; at < state.size(); at += count) parts.push_back(state[at]);
    remember(reductions[i], 0, total_of(reductions[i], std::move(parts), true));
  }
}

std::vector<Emitter::NextRow> Emitter::next_rows(std::span<const NodeRef> stores) {
  std::vector<NextRow> rows;
  if (tile_rows_ > 1 || analysis_.reductions().empty() || !plan_.simd) return rows;
  std::vector<NodeRef> terms;
  for (NodeRef reduction : analysis_.reductions()) terms.push_back(reduction->source(0));
  NodeMap<char> reduced;  // buffers
  for (NodeRef node : topological_order(terms))
    if (node->op == Op::Load) reduced[node->source(0)] = 1;

  for (NodeRef node : topological_order(stores)) {
    if (node->op != Op::Load || !reduced.contains(node->source(0))) continue;
    if (tiles_.contains(node->source(0)) || analysis_.is_written(node->source(0))) continue;
    if (std::optional<int64_t> step = next_row(node)) rows.push_back({node, *step});
  }
  return rows;
}

// Of a load along the lanes, where the innermost loop around runs over rows one by one.
std::optional<int64_t> Emitter::next_row(NodeRef load) {
  const int64_t element = static_cast<int64_t>(byte_size(load->dtype));
  NodeRef elements = load->source(0)->dim(0);
  const AxisForm& form = analysis_.form(load->source(1));
  const bool far = is_static(elements) && static_value(elements) * element > plan_.far_bytes;
  if (!far || form.overflow || lanes_of(form.in_rest) > 1 || !is_always(load->source(2)))
    return std::nullopt;
  const CodeBuilder::Scope* innermost = nullptr;
  std::optional<int64_t> step;
  bool along = false;
  for (const AxisForm::Term& term : form.terms) {
    const Binding& binding = bindings_[term.axis];
    if (!binding.bound || !is_constant(term.slope)) return std::nullopt;
    if (binding.tile.lanes > 1) {
      along = term.slope.constant == 1 &&
              analysis_.expected_size(term.axis) * element >= kShortestPrefetchedRow;
      continue;
    }
    if (innermost && binding.scope->depth < innermost->depth) continue;
    innermost = binding.scope;
    step = binding.tile.copies == 1 ? std::optional(term.slope.constant) : std::nullopt;
  }
  return along ? step : std::nullopt;
}

void Emitter::fetch(NodeRef load, Coordinate at, int64_t further) {
  ValueId here = place(load->source(1), at, lanes_of(analysis_.free(load))).value;
  code_.prefetch(analysis_.buffer_number(load->source(0)), code_.add(here, code_.index(further)));
}

void Emitter::fetch(std::span<const NextRow> rows, Coordinate at) {
  for (const NextRow& row : rows) fetch(row.load, at, row.step);
}

}  // namespace anneal
