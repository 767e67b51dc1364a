#include "kernel/body/online_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "kernel/plan/analysis.h"
#include "kernel/plan/axis_form.h"
#include "kernel/plan/cost.h"
#include "symbolic/bounds.h"
#include "symbolic/index_map.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

constexpr int kDeepest = 64;  // terms that are taken apart
constexpr int kUndecided = -2;

NodeRef number(DType dtype, double value) { return make_const(dtype, value); }
NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }

// Products of which null is 1.
NodeRef times(NodeRef a, NodeRef b) { return !a ? b : !b ? a : make(Op::Mul, {a, b}); }
NodeRef over(NodeRef a, NodeRef b) {
  if (!b) return a;
  return make(Op::Div, {a ? a : number(b->dtype, 1), b});
}

class OnePass {
 public:
  OnePass(const KernelBody& body, const Capabilities& capabilities)
      : body_(body), capabilities_(capabilities), free_(body), made_(body) {}

  KernelBody run() {
    if (!find_tiles() || !find_results()) return body_;
    for (Result& result : results_)
      if (!choose_pass(result)) return body_;
    if (!choose_block()) return body_;
    build();
    return std::move(made_);
  }

 private:
  // A reduction along the rows.
  struct Reduction {
    NodeRef node;
    NodeRef term;  // its operand along `along_`
    int pass = kUndecided;
    // The total so far, and of a maximum: with this block, what scales older sums, and what stands
    // for the maximum in exponents (0 while that is -inf).
    NodeRef total = nullptr, next = nullptr, scale = nullptr, shift = nullptr;
  };
  // A store that does not run along the rows, and the reductions in it.
  struct Result {
    NodeRef store;
    std::vector<size_t> reductions;
    int pass = kUndecided;
  };
  // What is known of a scalar: whether it changes along the rows, and the last pass it waits for.
  struct Facts {
    bool along = false;
    int pass = -1;
  };
  // after * core, where nothing in `core` waits for this pass but the maximum in exponents.
  struct Term {
    NodeRef core = nullptr, after = nullptr;  // null: 1
    Reduction* max = nullptr;
  };

  // ---- what the body is made of

  bool is_tile(NodeRef buffer) const { return std::ranges::count(body_.tiles, buffer) > 0; }

  std::span<const NodeRef> own_axes(NodeRef store) const {
    return store_axes(store).subspan(body_.tile_axes.size());
  }

  static bool is_plain(NodeRef store) {
    return store->op == Op::Store && is_always(store->source(2)) &&
           store->arg.axis == static_cast<int64_t>(store_axes(store).size());
  }

  NodeRef along_rows(NodeRef node, NodeRef axis) {
    NodeMap<NodeRef> names;
    names[axis] = along_;
    return substitute({&node, 1}, names)[0];
  }

  // Tiles hold a value for each element of one axis, all of the same size.
  bool find_tiles() {
    if (body_.tiles.empty()) return false;
    for (NodeRef store : body_.stores) {
      if (!is_plain(store)) return false;
      if (!is_tile(store->source(0))) continue;
      if (own_axes(store).size() != 1 || store->source(1) != own_axes(store)[0]) return false;
      NodeRef size = body_.axis_of(own_axes(store)[0]).size;
      if (size_ && size_ != size) return false;
      size_ = size;
    }
    if (!size_ || bounds(size_).min < 1) return false;
    along_ = make_variable("row", 0, std::max<int64_t>(1, bounds(size_).max - 1));
    for (NodeRef store : body_.stores) {
      if (!is_tile(store->source(0))) continue;
      if (!reads_tiles_at(store->source(3), own_axes(store)[0])) return false;
      tiles_[store->source(0)] = along_rows(store->source(3), own_axes(store)[0]);
    }
    return true;
  }

  // Whether every load of a tile is there, and no reduction runs over it.
  bool reads_tiles_at(NodeRef root, NodeRef axis) const {
    return std::ranges::all_of(topological_order({&root, 1}), [&](NodeRef node) {
      if (is_reduce_over(node->op))
        return std::ranges::count(node->sources().subspan(1), axis) == 0;
      return node->op != Op::Load || !is_tile(node->source(0)) || node->source(1) == axis;
    });
  }

  bool find_results() {
    for (NodeRef store : body_.stores) {
      if (is_tile(store->source(0))) continue;
      Result result{store, {}};
      NodeMap<char> inside;  // of its reductions
      for (NodeRef node : topological_order({&store, 1})) {
        if (!is_reduce_over(node->op) || !reads_tile(node->source(0))) continue;
        const bool simple = node->source_count == 2 && is_float(node->dtype) &&
                            byte_size(node->dtype) >= 4 &&
                            body_.axis_of(node->source(1)).size == size_ &&
                            reads_tiles_at(node->source(0), node->source(1));
        if (!simple) return false;
        result.reductions.push_back(reductions_.size());
        reductions_.push_back({node, along_rows(node->source(0), node->source(1))});
        for (NodeRef each : topological_order({&node, 1})) inside[each] = 1;
      }
      // Everything else is the same for all rows.
      for (NodeRef node : topological_order({&store, 1}))
        if (node->op == Op::Load && is_tile(node->source(0)) && !inside.find(node)) return false;
      results_.push_back(std::move(result));
    }
    return !reductions_.empty();
  }

  bool reads_tile(NodeRef root) const {
    return std::ranges::any_of(topological_order({&root, 1}), [&](NodeRef node) {
      return node->op == Op::Load && is_tile(node->source(0));
    });
  }

  // ---- passes

  Facts facts(NodeRef root) {
    for (NodeRef node : topological_order({&root, 1})) {
      if (facts_.find(node)) continue;
      Facts result;
      auto join = [&](const Facts& other) {
        result.along = result.along || other.along;
        result.pass = std::max(result.pass, other.pass);
      };
      for (NodeRef source : node->sources()) join(facts_[source]);
      if (node == along_) result.along = true;
      if (node->op == Op::Load) {
        if (const NodeRef* value = tiles_.find(node->source(0))) join(facts(*value));
        for (const Result& made : results_)
          if (made.store->source(0) == node->source(0)) join({false, made.pass});
      }
      facts_[node] = result;
    }
    return facts_[root];
  }

  // The first pass in which everything it needs is known, or can be made up for afterwards.
  bool choose_pass(Result& result) {
    int first = 0;
    NodeMap<char> inside;
    for (size_t number : result.reductions)
      for (NodeRef node : topological_order({&reductions_[number].node, 1})) inside[node] = 1;
    for (NodeRef node : topological_order({&result.store, 1}))
      if (node->op == Op::Load && !inside.find(node)) first = std::max(first, facts(node).pass);
    for (int pass = first; pass <= static_cast<int>(results_.size()); ++pass) {
      const bool possible = std::ranges::all_of(
          result.reductions, [&](size_t number) { return fits(reductions_[number], pass); });
      if (!possible) continue;
      result.pass = pass;
      for (size_t number : result.reductions) reductions_[number].pass = pass;
      passes_ = std::max(passes_, pass + 1);
      return true;
    }
    return false;
  }

  bool fits(const Reduction& reduction, int pass) {
    if (reduction.node->op != Op::SumOver) return facts(reduction.term).pass < pass;
    std::optional<Term> term = factor(reduction.term, pass, 0);
    return term && (!term->after || facts(term->after).pass <= pass);
  }

  std::optional<Term> factor(NodeRef node, int pass, int depth) {
    const Facts known = facts(node);
    if (!known.along) return Term{nullptr, node};
    if (known.pass < pass) return Term{node};
    if (depth > kDeepest) return {};
    auto of = [&](size_t source) { return factor(node->source(source), pass, depth + 1); };
    switch (node->op) {
      case Op::Mul: {
        std::optional<Term> a = of(0), b = of(1);
        if (!a || !b || (a->max && b->max)) return {};
        return Term{times(a->core, b->core), times(a->after, b->after), a->max ? a->max : b->max};
      }
      case Op::Div: {
        std::optional<Term> a = of(0), b = of(1);
        if (!a || !b || b->max) return {};
        return Term{over(a->core, b->core), over(a->after, b->after), a->max};
      }
      case Op::Neg: {
        std::optional<Term> a = of(0);
        if (a) a->core = make(Op::Neg, {a->core});
        return a;
      }
      case Op::Where: {  // as dropout has it: something or nothing
        NodeRef condition = node->source(0), other = node->source(2);
        const bool or_zero = other->is_const() && other->scalar().as_double() == 0;
        std::optional<Term> a = of(1);
        if (!or_zero || !a || !a->core || facts(condition).pass >= pass) return {};
        a->core = make(Op::Where, {condition, a->core, other});
        return a;
      }
      case Op::Load: {
        if (!is_tile_load(node)) return {};
        std::optional<Term> term = factor(*tiles_.find(node->source(0)), pass, depth + 1);
        if (term && !is_tile_load(term->core)) term->core = node;
        return term;
      }
      case Op::Exp: return factor_exp(node, pass);
      default: return {};
    }
  }

  bool is_tile_load(NodeRef node) const {
    return node && node->op == Op::Load && is_tile(node->source(0));
  }

  // exp(x + rest) = exp(x - max) * exp(rest + max), of a maximum of x found in this pass.
  std::optional<Term> factor_exp(NodeRef node, int pass) {
    NodeRef x = node->source(0), rest = nullptr;
    while (x->op == Op::Add) {
      const bool first = facts(x->source(0)).along, second = facts(x->source(1)).along;
      if (first && second) break;
      NodeRef constant = x->source(first ? 1 : 0);
      rest = rest ? make(Op::Add, {rest, constant}) : constant;
      x = x->source(first ? 0 : 1);
    }
    if (!rest || facts(x).pass >= pass) return {};
    for (Result& result : results_)
      for (size_t number : result.reductions) {
        Reduction& max = reductions_[number];
        if (max.node->op != Op::MaxOver || max.term != x || result.pass != pass) continue;
        prepare_max(max);
        Term term;
        term.core = make(Op::Exp, {make(Op::Add, {x, make(Op::Neg, {load(max.shift)})})});
        term.max = &max;
        const bool cancels = rest->op == Op::Neg && rest->source(0)->op == Op::Load &&
                             rest->source(0)->source(0) == result.store->source(0) &&
                             result.store->source(3) == max.node;
        if (!cancels) term.after = make(Op::Exp, {make(Op::Add, {rest, load(max.total)})});
        return term;
      }
    return {};
  }

  // ---- blocks

  // Two tiles of a block take half of the nearest memory.
  bool choose_block() {
    const int64_t row_bytes = 2 * capabilities_.vector_bytes, longest = bounds(size_).max;
    const auto fitting = static_cast<uint64_t>(
        std::max<int64_t>(1, capabilities_.nearest_memory_bytes / 4 / row_bytes));
    block_ = std::max(kSmallestOnlineBlock, static_cast<int64_t>(std::bit_floor(fitting)));
    if (longest < 2 * block_) return false;
    const int64_t whole = static_cast<int64_t>(body_.tiles.size()) * longest * row_bytes;
    if (passes_ > 1 && whole <= capabilities_.tile_memory_bytes) return false;
    if (!is_static(size_)) return true;
    for (int64_t divisor = block_; divisor > block_ / 2; --divisor)
      if (longest % divisor == 0) {
        block_ = divisor;
        whole_blocks_ = true;
        break;
      }
    return true;
  }

  void build() {
    made_.stores.clear();
    made_.tiles.clear();
    made_.masked_ranges.clear();
    for (int pass = 0; pass < passes_; ++pass) {
      build_loop(pass);
      for (const Result& result : results_)
        if (result.pass == pass) made_.stores.push_back(final_store(result));
    }
    keep_used_axes();
  }

  // One block after the other: its tiles, maxima, the tiles that need these, and sums.
  void build_loop(int pass) {
    std::vector<Reduction*> members;
    for (Reduction& reduction : reductions_)
      if (reduction.pass == pass) members.push_back(&reduction);
    if (members.empty()) return;
    NodeRef blocks =
        simplify(index_floor_div(index_add(size_, index_const(block_ - 1)), index_const(block_)));
    outer_ = make_variable(fmt::format("block{}", pass), 0, bounds(blocks).max - 1);
    inner_ = make_variable(fmt::format("within{}", pass), 0, block_ - 1);
    made_.axes.push_back({outer_, blocks});
    made_.axes.push_back({inner_, index_const(block_)});
    made_.block_axes.push_back(outer_);
    // Every axis of the tiles has the same reach.
    if (!body_.masked_ranges.empty()) {
      KernelBody::MaskedRange reach = body_.masked_ranges[0];
      reach.axis = outer_;
      reach.step = block_;
      made_.masked_ranges.push_back(reach);
    }
    block_tiles_ = NodeMap<NodeRef>();

    std::vector<NodeRef> cores;
    for (Reduction* member : members) cores.push_back(core_of(*member));
    for (Reduction* member : members) begin(*member);
    const std::map<NodeRef, NodeRef> values = needed_tiles(cores, pass);
    for (const bool late : {false, true}) {
      for (NodeRef store : body_.stores)
        if (auto value = values.find(store->source(0));
            value != values.end() && waits_for_max(value->second, values) == late)
          add(*block_tiles_.find(store->source(0)), inner_, image(value->second), {&inner_, 1});
      for (size_t i = 0; i < members.size(); ++i)
        if ((members[i]->node->op == Op::SumOver) == late) advance(*members[i], cores[i]);
    }
    for (Reduction* member : members)
      if (member->shift) add(member->total, index_const(0), load(member->next), {});
  }

  NodeRef core_of(const Reduction& reduction) {
    if (reduction.node->op != Op::SumOver) return reduction.term;
    NodeRef core = factor(reduction.term, reduction.pass, 0)->core;
    return core ? core : number(reduction.node->dtype, 1);
  }

  // What a block of each tile holds in this pass.
  std::map<NodeRef, NodeRef> needed_tiles(std::vector<NodeRef> roots, int pass) {
    std::map<NodeRef, NodeRef> values;
    while (!roots.empty()) {
      NodeRef root = roots.back();
      roots.pop_back();
      for (NodeRef node : topological_order({&root, 1})) {
        if (!is_tile_load(node) || values.contains(node->source(0))) continue;
        NodeRef tile = node->source(0), value = *tiles_.find(tile);
        if (facts(value).pass >= pass) value = factor(value, pass, 0)->core;
        if (!value) value = number(tile->dtype, 1);
        values[tile] = value;
        block_tiles_[tile] = new_tile(tile->dtype, index_const(block_));
        roots.push_back(value);
      }
    }
    return values;
  }

  bool waits_for_max(NodeRef root, const std::map<NodeRef, NodeRef>& values) const {
    return std::ranges::any_of(topological_order({&root, 1}), [&](NodeRef node) {
      if (node->op != Op::Load) return false;
      if (is_tile(node->source(0))) return waits_for_max(values.at(node->source(0)), values);
      return std::ranges::count(reductions_, node->source(0), &Reduction::shift) > 0;
    });
  }

  // In the block: rows become its elements, and beyond the last row nothing is read.
  NodeRef image(NodeRef root) {
    NodeMap<NodeRef> guarded, by;
    for (NodeRef node : topological_order({&root, 1})) {
      std::vector<NodeRef> sources;
      for (NodeRef source : node->sources()) sources.push_back(guarded[source]);
      const bool reads_rows = node->op == Op::Load && facts(node).along && !is_tile_load(node);
      if (reads_rows && !whole_blocks_)
        sources[2] = is_always(sources[2]) ? exists() : make(Op::And, {sources[2], exists()});
      guarded[node] = with_sources(node, sources);
      if (is_tile_load(node)) by[guarded[node]] = load(*block_tiles_.find(node->source(0)), inner_);
    }
    by[along_] = index_add(index_mul(outer_, index_const(block_)), inner_);
    return substitute({guarded.find(root), 1}, by)[0];
  }

  NodeRef exists() { return make(Op::Lt, {along_, size_}); }

  // The elements of a total: those of the axes beside the tiles' that the reduction depends on.
  struct Place {
    std::vector<NodeRef> axes, sizes;
  };
  Place place_of(const Reduction& reduction) {
    Place place;
    const AxisSet free = free_.of(reduction.node);
    for (const Axis& axis : body_.axes) {
      if (!free.contains(free_.number(axis.variable))) continue;
      if (std::ranges::count(body_.tile_axes, axis.variable)) continue;
      place.axes.push_back(axis.variable);
      place.sizes.push_back(axis.size);
    }
    return place;
  }
  NodeRef position_of(const Reduction& reduction) {
    const Place place = place_of(reduction);
    return simplify(flatten_index(place.axes, place.sizes));
  }

  void begin(Reduction& reduction) {
    const Place place = place_of(reduction);
    if (!reduction.total)
      reduction.total = new_tile(reduction.node->dtype, element_count_expr(place.sizes));
    add(reduction.total, position_of(reduction), start_of(reduction.node), place.axes, false);
  }

  void advance(Reduction& reduction, NodeRef core) {
    const DType dtype = reduction.node->dtype;
    const Place place = place_of(reduction);
    NodeRef position = position_of(reduction), before = load(reduction.total, position);
    NodeRef start = start_of(reduction.node);
    NodeRef term = image(core);
    if (!whole_blocks_) term = make(Op::Where, {image(exists()), term, start});
    NodeRef here = make(reduction.node->op, {term, inner_});
    switch (reduction.node->op) {
      case Op::SumOver: {
        const Reduction* max = factor(reduction.term, reduction.pass, 0)->max;
        if (max) before = make(Op::Mul, {before, load(max->scale)});
        add(reduction.total, position, make(Op::Add, {before, here}), place.axes);
        return;
      }
      case Op::ProdOver:
        add(reduction.total, position, make(Op::Mul, {before, here}), place.axes);
        return;
      case Op::MinOver:
        add(reduction.total, position, make(Op::Min, {before, here}), place.axes);
        return;
      default: break;
    }
    NodeRef larger = make(Op::Max, {before, here});
    if (!reduction.shift) return add(reduction.total, position, larger, place.axes);
    add(reduction.next, position, larger, {});
    NodeRef next = load(reduction.next), one = number(dtype, 1);
    NodeRef scale = make(Op::Exp, {make(Op::Add, {before, make(Op::Neg, {next})})});
    add(reduction.scale, position, make(Op::Where, {make(Op::Eq, {next, before}), one, scale}), {});
    add(reduction.shift, position,
        make(Op::Where, {make(Op::Eq, {next, start}), number(dtype, 0), next}), {});
  }

  static NodeRef start_of(NodeRef reduction) {
    const DType dtype = reduction->dtype;
    switch (reduction->op) {
      case Op::SumOver: return number(dtype, -0.0);
      case Op::ProdOver: return number(dtype, 1);
      case Op::MaxOver: return make_const(lowest(dtype));
      default: return make_const(highest(dtype));
    }
  }

  void add(NodeRef tile, NodeRef position, NodeRef value, std::span<const NodeRef> axes,
           bool in_blocks = true) {
    if (std::ranges::count(made_.tiles, tile) == 0) made_.tiles.push_back(tile);
    std::vector<NodeRef> sources{tile, position, always(), value};
    sources.insert(sources.end(), body_.tile_axes.begin(), body_.tile_axes.end());
    if (in_blocks) sources.push_back(outer_);
    sources.insert(sources.end(), axes.begin(), axes.end());
    made_.stores.push_back(
        make(Op::Store, sources, Arg(static_cast<int64_t>(body_.tile_axes.size()))));
  }

  // Of a row of -inf alone, the exponentials are those of -inf - -inf.
  NodeRef total_of(const Reduction& reduction) {
    NodeRef total = load(reduction.total, position_of(reduction));
    if (reduction.node->op != Op::SumOver) return total;
    const Term term = *factor(reduction.term, reduction.pass, 0);
    if (term.max) {
      NodeRef max = load(term.max->total);
      NodeRef nan = number(total->dtype, std::numeric_limits<double>::quiet_NaN());
      total = make(Op::Where, {make(Op::Eq, {max, start_of(term.max->node)}), nan, total});
    }
    return times(term.after, total);
  }

  NodeRef final_store(const Result& result) {
    NodeMap<NodeRef> totals;
    for (size_t number : result.reductions)
      totals[reductions_[number].node] = total_of(reductions_[number]);
    return substitute({&result.store, 1}, totals)[0];
  }

  void keep_used_axes() {
    NodeMap<char> used;
    for (NodeRef node : topological_order(made_.stores))
      if (node->op == Op::Variable) used[node] = 1;
    std::erase_if(made_.axes, [&](const Axis& axis) { return !used.find(axis.variable); });
  }

  // ---- memory

  NodeRef new_tile(DType dtype, NodeRef elements) {
    NodeRef tile =
        make_buffer("", static_cast<int64_t>(made_.buffers.size()), dtype, {&elements, 1});
    made_.buffers.push_back(tile);
    return tile;
  }

  NodeRef load(NodeRef tile, NodeRef position = nullptr) {
    return make(Op::Load, {tile, position ? position : index_const(0), always()});
  }

  void prepare_max(Reduction& max) {
    if (max.shift) return;
    NodeRef one = index_const(1);
    for (NodeRef* tile : {&max.total, &max.next, &max.scale, &max.shift})
      *tile = new_tile(max.node->dtype, one);
  }

  const KernelBody& body_;
  const Capabilities& capabilities_;
  FreeAxes free_;  // of the body as it came
  NodeRef size_ = nullptr, along_ = nullptr;
  NodeMap<NodeRef> tiles_;  // what each holds
  std::vector<Reduction> reductions_;
  std::vector<Result> results_;
  NodeMap<Facts> facts_;
  int passes_ = 1;
  int64_t block_ = 0;
  bool whole_blocks_ = false;                  // the last one is as long as the others
  NodeRef outer_ = nullptr, inner_ = nullptr;  // the block, and the element in it
  NodeMap<NodeRef> block_tiles_;
  KernelBody made_;
};

}  // namespace

KernelBody online_reductions(const KernelBody& body, const Capabilities& capabilities) {
  return OnePass(body, capabilities).run();
}

}  // namespace anneal
