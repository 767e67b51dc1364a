#include "kernel/emit/emit.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include <anneal/error.h>

#include "ir/build.h"
#include "ir/index.h"
#include "symbolic/bounds.h"

namespace anneal {

class Emitter::Bound {
 public:
  Bound(Emitter& emitter, size_t axis, Binding binding)
      : emitter_(emitter), axis_(axis), before_(emitter.bindings_[axis]) {
    binding.bound = true;
    binding.stamp = ++emitter.stamps_ * 0x9e3779b97f4a7c15u;
    binding.scope = emitter.code_.current();
    if (binding.tile.copies > 1) {
      binding.slot = std::countr_one(emitter.used_slots_);
      if (binding.slot >= kSlots || binding.tile.copies > 256)
        throw InternalError("too many copies of too many axes");
      emitter.used_slots_ |= 1u << binding.slot;
    }
    emitter.bindings_[axis] = binding;
    emitter.bound_.add(axis);
  }
  ~Bound() {
    const int slot = emitter_.bindings_[axis_].slot;
    if (slot >= 0) emitter_.used_slots_ &= ~(1u << slot);
    emitter_.bindings_[axis_] = before_;
    if (!before_.bound) emitter_.bound_.remove(axis_);
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  Emitter& emitter_;
  size_t axis_;
  Binding before_;
};

Emitter::Assignment::Assignment(Emitter& emitter, std::span<const Assigned> axes,
                                const std::vector<ValueId>& exists)
    : emitter_(emitter) {
  const size_t copies = axes.empty() ? 1 : axes[0].values.size();
  if (copies > 1) {
    slot_ = std::countr_one(emitter.used_slots_);
    if (slot_ >= kSlots || copies > 256) throw InternalError("too many copies of too many axes");
    emitter.used_slots_ |= 1u << slot_;
  }
  for (const Assigned& assigned : axes) {
    Binding binding;
    binding.bound = true;
    int lanes = 1;
    for (ValueId value : assigned.values) lanes = std::max(lanes, emitter.code_.lanes(value));
    binding.tile = {lanes, static_cast<int>(copies)};
    binding.slot = slot_;
    binding.values = assigned.values;
    binding.bases = assigned.bases;
    binding.offsets = assigned.offsets;
    binding.exists = exists;
    binding.stamp = ++emitter.stamps_ * 0x9e3779b97f4a7c15u;
    binding.scope = emitter.code_.current();
    emitter.bindings_[assigned.axis] = std::move(binding);
    emitter.bound_.add(assigned.axis);
    axes_.push_back(assigned.axis);
  }
}

Emitter::Assignment::~Assignment() {
  if (slot_ >= 0) emitter_.used_slots_ &= ~(1u << slot_);
  for (size_t axis : axes_) {
    emitter_.bindings_[axis] = {};
    emitter_.bound_.remove(axis);
  }
}

Emitter::Emitter(Analysis& analysis, const KernelPlan& plan, CodeBuilder& code)
    : analysis_(analysis),
      plan_(plan),
      code_(code),
      bindings_(analysis.axis_count()),
      serving_(analysis.body().stores) {
  served_by_[code.current()] = serving_;
}

// ---- loops

Emitter::Range Emitter::whole(size_t axis) {
  NodeRef size = analysis_.size(axis);
  Range range{code_.index(0), value(size, 0), is_static(size) ? static_value(size) : -1,
              analysis_.size_multiple(axis), analysis_.may_be_empty(axis)};
  range.longest = std::max<int64_t>(0, bounds(size).max);
  for (const KernelBody::MaskedRange& reach : analysis_.body().masked_ranges)
    if (analysis_.number(reach.axis) == axis) limit(range, reach);
  return range;
}

// To what some row of the tile reaches. Ends are rounded, so that tiles stay whole.
void Emitter::limit(Range& range, const KernelBody::MaskedRange& reach) {
  constexpr int64_t kRounding = 16;
  const Binding& rows = bindings_[analysis_.number(analysis_.body().tile_axes.back())];
  const int64_t unit = range.multiple % kRounding == 0 ? kRounding : 1;
  auto divided = [&](ValueId a, int64_t b) {
    return code_.compute(Op::FloorDiv, DType::Index, {a, code_.index(b)});
  };
  auto larger = [&](ValueId a, ValueId b) { return code_.compute(Op::Max, DType::Index, {a, b}); };
  if (reach.last) {
    ValueId last = code_.add(rows.base, code_.index(rows.tile.elements() - 1 + *reach.last));
    ValueId count = code_.add(divided(divided(last, reach.step), unit), code_.index(1));
    count = code_.mul(count, code_.index(unit));
    range.end = code_.min(range.end, larger(count, code_.index(0)));
  }
  if (reach.first) {
    ValueId first = code_.add(rows.base, code_.index(*reach.first));
    first = code_.mul(divided(divided(first, reach.step), unit), code_.index(unit));
    range.begin = code_.min(larger(first, code_.index(0)), range.end);
  }
  const bool some = (!reach.last || *reach.last >= 0) && (!reach.first || *reach.first <= 0);
  range.may_be_empty = range.may_be_empty || !some;
  range.extent = -1;
  range.multiple = unit;
}

Emitter::Range Emitter::block(size_t axis, ValueId begin, int64_t elements, int64_t tile_elements) {
  ValueId end = code_.add(begin, code_.index(elements));
  const int64_t multiple = analysis_.size_multiple(axis);
  if (multiple % elements == 0) return {begin, end, elements, elements, false};
  end = code_.min(end, value(analysis_.size(axis), 0));
  if (code_.is_constant(begin) && code_.is_constant(end)) {
    const int64_t extent = code_.constant_value(end) - code_.constant_value(begin);
    return {begin, end, extent, std::max<int64_t>(1, extent), false};
  }
  Range range{begin, end, -1, std::gcd(elements, multiple), false};
  range.longest = elements;
  if (is_static(analysis_.size(axis)) && elements % tile_elements == 0) {
    range.rest = static_value(analysis_.size(axis)) % tile_elements;
    range.rest_of = tile_elements;
  }
  return range;
}

void Emitter::part(size_t axis, const Range& range, Tile tile, int64_t remaining, State& state,
                   const StatefulBody& body) {
  if (range.extent == 0) return;
  Binding binding;
  binding.tile = tile;
  if (remaining >= 0) binding.remaining = code_.index(remaining);
  if (range.extent > 0 && range.extent <= tile.elements()) {  // once: no loop
    binding.base = range.begin;
    Bound bound(*this, axis, binding);
    body(state);
    return;
  }
  binding.base =
      code_.open_loop(range.begin, range.end, code_.index(tile.elements()), range.may_be_empty);
  served_by_[code_.current()] = serving_;
  if (remaining == kUnknown) binding.remaining = code_.sub(range.end, binding.base);
  State carried;
  for (ValueId start : state) carried.push_back(code_.carry(start));
  State next = carried;
  {
    Bound bound(*this, axis, binding);
    body(next);
  }
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (size_t i = 0; i < state.size(); ++i) pairs.emplace_back(carried[i], next[i]);
  code_.close_loop(pairs);
  state = carried;
}

void Emitter::over(size_t axis, const Range& range, Tile tile, State& state,
                   const StatefulBody& body, Tail tail) {
  const int64_t step = tile.elements();
  auto tile_for = [&](int64_t rest) {
    const auto copies = static_cast<int>((rest + tile.lanes - 1) / tile.lanes);
    return Tile{tile.lanes, copies, copies % tile.neighbours == 0 ? tile.neighbours : 1};
  };
  if (range.extent >= 0) {
    const int64_t full = range.extent / step * step, rest = range.extent - full;
    auto from_to = [&](int64_t from, int64_t to) {
      return Range{code_.add(range.begin, code_.index(from)),
                   code_.add(range.begin, code_.index(to)), to - from, 1, range.may_be_empty};
    };
    part(axis, from_to(0, full), tile, kAll, state, body);
    part(axis, from_to(full, range.extent), tile_for(rest), rest % tile.lanes == 0 ? kAll : rest,
         state, body);
    return;
  }
  if (range.multiple % step == 0) return part(axis, range, tile, kAll, state, body);
  Range full = range, rest = range;
  ValueId extent = code_.sub(range.end, range.begin);
  ValueId tiles = code_.compute(Op::FloorDiv, DType::Index, {extent, code_.index(step)});
  full.end = rest.begin = code_.add(range.begin, code_.mul(tiles, code_.index(step)));
  part(axis, full, tile, kAll, state, body);
  if (range.rest >= 0 && range.rest_of == step) {  // all of it, or nothing
    const bool exact = range.rest % tile.lanes == 0;
    part(axis, rest, tile_for(range.rest), exact ? kAll : range.rest, state, body);
  } else if (tail == Tail::Masked) {
    part(axis, rest, tile, kUnknown, state, body);
  } else {
    part(axis, rest, {tile.lanes, 1}, range.multiple % tile.lanes == 0 ? kAll : kUnknown, state,
         body);
  }
}

void Emitter::over(size_t axis, const Range& range, Tile tile, const std::function<void()>& body,
                   Tail tail) {
  State none;
  over(axis, range, tile, none, [&](State&) { body(); }, tail);
}

void Emitter::over(std::span<const Loop> loops, State& state, const StatefulBody& body) {
  if (loops.empty()) return body(state);
  const Loop& loop = loops[0];
  over(
      loop.axis, loop.range, loop.tile, state,
      [&](State& inner) { over(loops.subspan(1), inner, body); }, loop.tail);
}

void Emitter::over(std::span<const Loop> loops, const std::function<void()>& body) {
  State none;
  over(loops, none, [&](State&) { body(); });
}

// ---- what was made before

size_t Emitter::MemoHash::operator()(const MemoKey& key) const {
  uint64_t hash = key.node->id * 0x9e3779b97f4a7c15u;
  hash = (hash ^ key.at) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ key.stamp) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

Emitter::MemoKey Emitter::memo_key(NodeRef node, Coordinate at) {
  Coordinate kept = 0;
  uint64_t stamp = 0;
  for (size_t axis : (with_last(analysis_.free(node)) & bound_).list()) {
    const Binding& binding = bindings_[axis];
    stamp += binding.stamp;
    if (binding.slot >= 0) kept |= at & slot_mask(binding.slot);
  }
  return {node, kept, stamp};
}

ValueId Emitter::remembered(NodeRef node, Coordinate at) {
  auto known = memo_.find(memo_key(node, at));
  return known != memo_.end() && code_.is_visible(known->second) ? known->second : kNoValue;
}

void Emitter::remember(NodeRef node, Coordinate at, ValueId value) {
  memo_[memo_key(node, at)] = value;
}

std::vector<Coordinate> Emitter::coordinates(const AxisSet& axes) const {
  std::vector<Coordinate> all{0};
  unsigned seen = 0;  // slots: those of an Assignment are of several axes
  for (size_t axis : (with_last(axes) & bound_).list()) {
    const Binding& binding = bindings_[axis];
    if (binding.slot < 0 || (seen >> binding.slot & 1) != 0) continue;
    seen |= 1u << binding.slot;
    std::vector<Coordinate> more;
    for (Coordinate at : all)
      for (int copy = 0; copy < binding.tile.copies; ++copy)
        more.push_back(at | static_cast<Coordinate>(copy) << binding.slot * kSlotBits);
    all = std::move(more);
  }
  return all;
}

int Emitter::copy_of(const Binding& binding, Coordinate at) const {
  return binding.slot < 0 ? 0 : static_cast<int>(at >> binding.slot * kSlotBits & 0xFF);
}

int Emitter::lanes_of(const AxisSet& axes) const {
  int lanes = 1;
  for (size_t axis : (with_last(axes) & bound_).list())
    lanes = std::max(lanes, bindings_[axis].tile.lanes);
  return lanes;
}

CodeBuilder::Scope* Emitter::scope_of(const AxisSet& axes) const {
  CodeBuilder::Scope* scope = code_.memory_floor();
  for (size_t axis : (with_last(axes) & bound_).list())
    scope = code_.deeper(scope, bindings_[axis].scope);
  return scope;
}

// ---- scalars

ValueId Emitter::value(NodeRef root, Coordinate at) {
  // Without recursion: bodies may be deep.
  std::vector<NodeRef> stack{root};
  while (!stack.empty()) {
    NodeRef node = stack.back();
    if (remembered(node, at) != kNoValue) {
      stack.pop_back();
      continue;
    }
    const size_t before = stack.size();
    if ((is_elementwise(node->op) || node->op == Op::AsIndex) && !staged_.contains(node))
      for (size_t i = node->source_count; i-- > 0;)
        if (remembered(node->source(i), at) == kNoValue) stack.push_back(node->source(i));
    if (stack.size() > before) continue;
    remember(node, at, make(node, at));
    stack.pop_back();
  }
  return remembered(root, at);
}

ValueId Emitter::make(NodeRef node, Coordinate at) {
  if (auto staged = staged_.find(node); staged != staged_.end())
    return load_staged(staged->second, at);
  if (is_reduce_over(node->op)) {
    reduce(node);
    return remembered(node, at);
  }
  switch (node->op) {
    case Op::Const: return code_.constant(node->scalar());
    case Op::Load: return load(node, at);
    case Op::Variable: {
      const size_t axis = analysis_.number(node);
      if (axis < analysis_.axis_count()) return axis_value(axis, at);
      const std::vector<NodeRef>& sizes = analysis_.body().variables;
      auto size = std::find(sizes.begin(), sizes.end(), node);
      if (size == sizes.end()) throw InternalError("a kernel does not list a variable it needs");
      return code_.size(static_cast<int>(size - sizes.begin()));
    }
    default: break;
  }
  if (!is_elementwise(node->op) && node->op != Op::AsIndex)
    throw InternalError(fmt::format("{} in a kernel", name(node->op)));
  std::vector<ValueId> operands;
  for (NodeRef source : node->sources()) operands.push_back(remembered(source, at));
  return code_.compute(node->op, node->dtype, operands);
}

AxisSet Emitter::with_last(AxisSet axes) const {
  for (size_t axis : leading_)
    if (axes.contains(axis)) axes.add(last_);
  return axes;
}

// Of axes that run as one: the digits of what the last one counts, the outermost without end.
ValueId Emitter::axis_value(size_t axis, Coordinate at) {
  const bool leading = std::ranges::count(leading_, axis) > 0;
  if (!leading && (leading_.empty() || axis != last_)) return count_of(axis, at);
  ValueId rest = count_of(last_, at);
  for (size_t i = leading_.size(); i-- > 0;) {
    const size_t inside = i + 1 < leading_.size() ? leading_[i + 1] : last_;
    ValueId size = code_.index(static_value(analysis_.size(inside)));
    if (axis == inside) return code_.compute(Op::Mod, DType::Index, {rest, size});
    rest = code_.compute(Op::FloorDiv, DType::Index, {rest, size});
  }
  return rest;
}

ValueId Emitter::count_of(size_t axis, Coordinate at) {
  const Binding& binding = bindings_[axis];
  if (!binding.bound) throw InternalError("a scalar is used outside the loop of its axis");
  if (!binding.values.empty()) return binding.values[static_cast<size_t>(copy_of(binding, at))];
  const Tile& tile = binding.tile;
  ValueId first = code_.add(binding.base, code_.index(tile.distance(copy_of(binding, at))));
  return tile.lanes == 1 ? first : code_.ramp(first, code_.index(tile.neighbours), tile.lanes);
}

ValueId Emitter::mask(const AxisSet& axes, Coordinate at) {
  ValueId all = kNoValue;
  for (size_t axis : (axes & bound_).list()) {
    const Binding& binding = bindings_[axis];
    if (!binding.exists.empty())
      all = code_.both(all, binding.exists[static_cast<size_t>(copy_of(binding, at))]);
    if (binding.remaining == kNoValue) continue;
    const Tile& tile = binding.tile;
    const int64_t begin = tile.distance(copy_of(binding, at));
    const int64_t last = begin + int64_t{tile.lanes - 1} * tile.neighbours;
    const bool full =
        code_.is_constant(binding.remaining) && code_.constant_value(binding.remaining) > last;
    if (full) continue;
    ValueId first = code_.index(begin);
    if (tile.lanes > 1) first = code_.ramp(first, code_.index(tile.neighbours), tile.lanes);
    all = code_.both(all, code_.compute(Op::Lt, DType::Bool, {first, binding.remaining}));
  }
  return all;
}

// ---- stores

void Emitter::stores(std::span<const NodeRef> stores, std::span<const AxisLoop> loops) {
  Serving serving(*this, {stores.begin(), stores.end()});
  const bool keeps_row = stores.size() == 1 && loops.size() == 1 && loops[0].tile.lanes > 1 &&
                         tiles_.contains(stores[0]->source(0));
  if (keeps_row) return keep_row(stores[0], loops[0]);
  if (!loops.empty()) {
    over(loops[0].axis, whole(loops[0].axis), loops[0].tile,
         [&] { this->stores(stores, loops.subspan(1)); });
    return;
  }
  AxisSet axes;
  for (NodeRef each : stores) axes = axes | analysis_.listed_set(each);
  const std::vector<NextRow> next = next_rows(stores);
  for (Coordinate at : coordinates(axes)) {
    if (stores.size() == 1 && store_zipped(stores[0], at)) continue;
    for (NodeRef each : stores) value(each->source(3), at);
    for (NodeRef each : stores) store(each, at);
    fetch(next, at);
  }
}

void Emitter::stores_with_prefetched_operands(std::span<const NodeRef> stores, int ahead) {
  Serving serving(*this, {stores.begin(), stores.end()});
  AxisSet axes;
  for (NodeRef each : stores) axes = axes | analysis_.listed_set(each);
  std::vector<NodeRef> loads;  // an element for each that is stored
  for (NodeRef node : topological_order(stores))
    if (node->op == Op::Load && analysis_.free(node) == axes) loads.push_back(node);
  const std::vector<Coordinate> all = coordinates(axes);
  const size_t together =
      loads.empty() ? all.size() : std::max<size_t>(1, static_cast<size_t>(ahead) / loads.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % together == 0)
      for (size_t j = i; j < std::min(i + together, all.size()); ++j)
        for (NodeRef load : loads) value(load, all[j]);
    for (NodeRef each : stores) value(each->source(3), all[i]);
    for (NodeRef each : stores) store(each, all[i]);
  }
}

}  // namespace anneal
