#include "schedule/fragments/masks.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "body/axis_bounds.h"
#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"

namespace anneal {
namespace {

using Bounds = std::vector<AxisBound>;

void add(Bounds& all, const Bounds& more) {
  for (const AxisBound& bound : more)
    if (std::ranges::count(all, bound) == 0) all.push_back(bound);
}

void keep_common(Bounds& some, const Bounds& others) {
  std::erase_if(some,
                [&](const AxisBound& bound) { return std::ranges::count(others, bound) == 0; });
}

double constant(NodeRef node) {
  return node->is_const() && is_float(node->dtype) ? node->scalar().as_double() : NAN;
}

// A value is 0, or -inf, where any of these does not hold.
struct Known {
  Bounds zero, minus_infinity;
};

// What is known of a stored value, in the axes of its store.
struct StoredMask {
  const Fragment* fragment;
  NodeRef store;
  Known known;
};

class Masks {
 public:
  explicit Masks(Rangified& program) : program_(program), masks_(program.buffers.size()) {}

  void run() {
    for (const Fragment& fragment : program_.fragments) learn(fragment);
    for (Fragment& fragment : program_.fragments)
      if (is_plain_product(fragment)) {
        leave_out_results(fragment);
        leave_out_terms(fragment);
      }
  }

 private:
  static bool is_plain_product(const Fragment& fragment) {
    return fragment.is_product && fragment.tiles.empty() && fragment.phases.size() == 1 &&
           fragment.phases[0].size() == 1 && fragment.phases[0][0]->op == Op::Store;
  }

  bool is_temporary(NodeRef buffer) const {
    return program_.buffers[static_cast<size_t>(schedule_buffer_of(buffer))].is_temporary();
  }

  // ---- what is known of values

  void learn(const Fragment& fragment) {
    if (!fragment.tiles.empty()) return;
    NodeMap<Known> known;
    for (const std::vector<NodeRef>& phase : fragment.phases)
      for (NodeRef node : topological_order(phase)) {
        known[node] = known_of(fragment, node, known);
        if (node->op != Op::Store || !is_temporary(node->source(0))) continue;
        const Known& value = *known.find(node->source(3));
        const auto buffer = static_cast<size_t>(schedule_buffer_of(node->source(0)));
        if (!value.zero.empty() || !value.minus_infinity.empty())
          masks_[buffer] = StoredMask{&fragment, node, value};
      }
  }

  // Everyone sees something: of rows that see nothing, softmax is NaN.
  static bool is_seen(const Fragment& fragment, const AxisBound& bound) {
    auto size = [&](NodeRef axis) -> int64_t {
      auto entry = std::ranges::find(fragment.axes, axis, &Axis::variable);
      if (entry == fragment.axes.end() || !is_static(entry->size)) return -1;
      return static_value(entry->size);
    };
    const int64_t low = size(bound.low), high = size(bound.high);
    return low > 0 && high > 0 && bound.by >= 0 && low <= high + bound.by;
  }

  static Bounds seen_bounds(const Fragment& fragment, NodeRef condition) {
    Bounds bounds = bounds_in(condition);
    std::erase_if(bounds, [&](const AxisBound& bound) { return !is_seen(fragment, bound); });
    return bounds;
  }

  Known known_of(const Fragment& fragment, NodeRef node, const NodeMap<Known>& known) const {
    auto of = [&](size_t i) -> const Known& { return *known.find(node->source(i)); };
    Known result;
    switch (node->op) {
      case Op::Load: return of_stored(fragment, node);
      case Op::Where: {
        const double other = constant(node->source(2));
        if (other != 0 && other != -INFINITY) break;
        result = of(1);
        (other == 0 ? result.minus_infinity : result.zero).clear();
        add(other == 0 ? result.zero : result.minus_infinity,
            seen_bounds(fragment, node->source(0)));
        break;
      }
      case Op::Mul:
        result.zero = of(0).zero;
        add(result.zero, of(1).zero);
        if (constant(node->source(1)) > 0) result.minus_infinity = of(0).minus_infinity;
        break;
      case Op::Div:
      case Op::Neg: result.zero = of(0).zero; break;
      case Op::Cast:
        if (is_float(node->dtype) && is_float(node->source(0)->dtype)) result = of(0);
        break;
      case Op::Add:
        result.minus_infinity = of(0).minus_infinity;
        add(result.minus_infinity, of(1).minus_infinity);
        for (const AxisBound& bound : of(0).zero)
          if (std::ranges::count(of(1).zero, bound) > 0) result.zero.push_back(bound);
        break;
      case Op::Exp:
      case Op::Exp2: result.zero = of(0).minus_infinity; break;
      default: break;
    }
    return result;
  }

  // In the axes of whoever loads it.
  Known of_stored(const Fragment& fragment, NodeRef load) const {
    const std::optional<StoredMask>& mask =
        masks_[static_cast<size_t>(schedule_buffer_of(load->source(0)))];
    if (!mask || !is_always(load->source(2))) return {};
    const std::optional<Renaming> renaming =
        match_axes(mask->fragment->axes, mask->store, fragment.axes, load->source(1));
    if (!renaming) return {};
    auto here = [&](NodeRef axis) {
      return std::ranges::find(*renaming, axis, &std::pair<NodeRef, NodeRef>::first)->second;
    };
    Known known = mask->known;
    for (Bounds* bounds : {&known.zero, &known.minus_infinity})
      for (AxisBound& bound : *bounds) bound = {here(bound.low), here(bound.high), bound.by};
    return known;
  }

  // ---- sums

  // Says of operands which of their terms are 0.
  void leave_out_terms(Fragment& fragment) {
    NodeRef& store = fragment.phases[0][0];
    NodeMap<NodeRef> by;
    for (NodeRef sum : topological_order({&store, 1})) {
      if (sum->op != Op::SumOver || sum->source_count != 2 || sum->source(0)->op != Op::Mul)
        continue;
      for (NodeRef operand : sum->source(0)->sources()) {
        if (operand->op != Op::Load) continue;
        for (const AxisBound& bound : of_stored(fragment, operand).zero)
          if (bound.low == sum->source(1) || bound.high == sum->source(1))
            by[operand] = under(bound, operand, by.contains(operand) ? by[operand] : operand);
      }
    }
    if (by.size() > 0) store = substitute({&store, 1}, by)[0];
  }

  static NodeRef under(const AxisBound& bound, NodeRef like, NodeRef value) {
    NodeRef inside = make(Op::Le, {bound.low, index_add(bound.high, index_const(bound.by))});
    return make(Op::Where, {inside, value, make_const(like->dtype, 0)});
  }

  // ---- results

  // Stores 0 where no reader looks.
  void leave_out_results(Fragment& fragment) {
    NodeRef& store = fragment.phases[0][0];
    const int buffer = schedule_buffer_of(store->source(0));
    if (!is_temporary(store->source(0)) || !is_float(store->source(3)->dtype)) return;
    std::optional<Bounds> unseen;  // outside of which nobody looks
    for (const Fragment& reader : program_.fragments) {
      if (std::ranges::count(reader.reads, buffer) == 0) continue;
      const std::optional<Bounds> of_reader = bounds_of_reader(fragment, store, reader);
      if (!of_reader) return;
      if (unseen)
        keep_common(*unseen, *of_reader);
      else
        unseen = of_reader;
    }
    if (!unseen || unseen->empty()) return;
    NodeRef value = store->source(3);
    for (const AxisBound& bound : *unseen) value = under(bound, store->source(3), value);
    std::vector<NodeRef> sources(store->sources().begin(), store->sources().end());
    sources[3] = value;
    store = with_sources(store, sources);
  }

  // Within which each node of a fragment is looked at: nobody sees the rest of it.
  NodeMap<Bounds> looks_at(const Fragment& fragment) const {
    NodeMap<Known> known;
    NodeMap<Bounds> looks;
    auto look = [&](NodeRef node, const Bounds& within) {
      if (Bounds* before = looks.find(node))
        keep_common(*before, within);
      else
        looks[node] = within;
    };
    for (const std::vector<NodeRef>& phase : fragment.phases) {
      const std::vector<NodeRef> order = topological_order(phase);
      for (NodeRef node : order) known[node] = known_of(fragment, node, known);
      for (NodeRef store : phase) look(store, {});
      for (size_t i = order.size(); i-- > 0;) {
        NodeRef node = order[i];
        const Bounds within = *looks.find(node);
        for (size_t k = 0; k < node->source_count; ++k) {
          Bounds inner = within;
          if (node->op == Op::Where && k == 1) add(inner, seen_bounds(fragment, node->source(0)));
          if (node->op == Op::Mul) add(inner, known.find(node->source(1 - k))->zero);
          look(node->source(k), inner);
        }
      }
    }
    return looks;
  }

  // Within which a reader looks at what the store writes, in the axes of the store.
  std::optional<Bounds> bounds_of_reader(const Fragment& writer, NodeRef store,
                                         const Fragment& reader) const {
    if (!reader.tiles.empty()) return std::nullopt;
    const NodeMap<Bounds> looks = looks_at(reader);
    std::optional<Bounds> all;
    for (const std::vector<NodeRef>& phase : reader.phases)
      for (NodeRef node : topological_order(phase)) {
        if (node->op != Op::Load || node->source(0) != store->source(0)) continue;
        const std::optional<Bounds> here =
            in_axes_of(writer, store, reader, node, *looks.find(node));
        if (!here) return std::nullopt;
        if (all)
          keep_common(*all, *here);
        else
          all = here;
      }
    return all;
  }

  std::optional<Bounds> in_axes_of(const Fragment& writer, NodeRef store, const Fragment& reader,
                                   NodeRef load, const Bounds& bounds) const {
    const std::optional<Renaming> renaming =
        match_axes(writer.axes, store, reader.axes, load->source(1));
    if (!renaming) return std::nullopt;
    Bounds result;
    auto there = [&](NodeRef axis) -> NodeRef {
      auto entry = std::ranges::find(*renaming, axis, &std::pair<NodeRef, NodeRef>::second);
      return entry == renaming->end() ? nullptr : entry->first;
    };
    for (const AxisBound& bound : bounds) {
      const AxisBound moved{there(bound.low), there(bound.high), bound.by};
      if (moved.low && moved.high) result.push_back(moved);
    }
    return result;
  }

  Rangified& program_;
  std::vector<std::optional<StoredMask>> masks_;  // by buffer
};

}  // namespace

void keep_masks(Rangified& program) { Masks(program).run(); }

}  // namespace anneal
