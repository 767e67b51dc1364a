#include "symbolic/bounds.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/checked.h"
#include "ir/node_map.h"

namespace anneal {
namespace {

__extension__ using Wide = __int128;

constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

// Longer sums are taken as they are nested: their linear forms would cost a pass for every part.
constexpr uint64_t kLongestSum = 256;
constexpr uint64_t kCountless = uint64_t{1} << 60;

int64_t saturate(Wide value) {
  return value <= kLow ? kLow : value >= kHigh ? kHigh : static_cast<int64_t>(value);
}

// An unknown end stays unknown, whatever is added to it or multiplied with it.
int64_t add_ends(int64_t a, int64_t b) {
  if (a == kLow || a == kHigh) return a;
  if (b == kLow || b == kHigh) return b;
  return saturate(static_cast<Wide>(a) + b);
}
int64_t multiply_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kLow || a == kHigh || b == kLow || b == kHigh) return (a < 0) == (b < 0) ? kHigh : kLow;
  return saturate(static_cast<Wide>(a) * b);
}
int64_t divide_ends(int64_t a, int64_t b) {  // b is not 0
  if (a == kLow || a == kHigh) return (a < 0) == (b < 0) ? kHigh : kLow;
  if (b == kLow || b == kHigh) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  return floor_div(a, b);
}

Interval around(std::initializer_list<int64_t> values) {
  return {std::min(values), std::max(values)};
}

bool is_part(NodeRef node) {
  return node->rank() == 0 && (node->dtype == DType::Index || node->dtype == DType::Bool);
}

struct Facts {
  Interval range;
  uint64_t size = 1;
  bool exact = true;  // no part can overflow
};

// Lives in the graph whose nodes it holds (Graph::memory).
struct FactTable {
  NodeMap<Facts> facts;
};

Interval truth(bool can_be_false, bool can_be_true) {
  return {can_be_false ? 0 : 1, can_be_true ? 1 : 0};
}

class FactBuilder {
 public:
  explicit FactBuilder(NodeMap<Facts>& facts) : facts_(facts) {}

  Facts find(NodeRef root) {
    if (const Facts* known = facts_.find(root)) return *known;
    stack_.assign({root});
    while (!stack_.empty()) {
      NodeRef node = stack_.back();
      if (facts_.contains(node) || parts_ready(node)) {
        stack_.pop_back();
        if (!facts_.contains(node)) facts_.insert(node, compute(node));
      }
    }
    return *facts_.find(root);
  }

 private:
  bool parts_ready(NodeRef node) {
    bool ready = true;
    if (!is_part(node)) return true;
    for (NodeRef source : node->sources()) {
      if (facts_.contains(source)) continue;
      stack_.push_back(source);
      ready = false;
    }
    return ready;
  }

  Interval range(NodeRef node) const { return facts_.find(node)->range; }

  Facts compute(NodeRef node) const {
    Facts facts;
    if (!is_part(node)) return facts;
    for (NodeRef source : node->sources()) {
      const Facts& part = *facts_.find(source);
      facts.size = std::min(kCountless, facts.size + part.size);
      facts.exact = facts.exact && part.exact;
    }
    facts.range =
        node->dtype == DType::Bool ? condition(node, facts.size) : value(node, facts.size);
    facts.exact = facts.exact && facts.range.is_finite();
    return facts;
  }

  Interval of_form(const LinearForm& form) const {
    if (form.overflow) return {};
    Interval sum{form.constant, form.constant};
    for (const LinearForm::Term& term : form.terms)
      sum = sum + range(term.base) * Interval{term.factor, term.factor};
    return sum;
  }

  Interval value(NodeRef node, uint64_t size) const {
    auto source = [&](size_t i) { return range(node->source(i)); };
    switch (node->op) {
      case Op::Const: return {static_value(node), static_value(node)};
      case Op::Variable: return {node->arg.symbol->first, node->arg.symbol->second};
      case Op::Add: {
        Interval sum = source(0) + source(1);
        return size <= kLongestSum ? sum & of_form(linear_form(node)) : sum;
      }
      case Op::Mul: {
        Interval product = source(0) * source(1);
        if (node->source(0) == node->source(1))
          return {std::max<int64_t>(0, product.min), product.max};
        return product;
      }
      case Op::FloorDiv: return floor_div(source(0), source(1));
      case Op::Mod: return floor_mod(source(0), source(1));
      case Op::Max:
        return {std::max(source(0).min, source(1).min), std::max(source(0).max, source(1).max)};
      case Op::Min:
        return {std::min(source(0).min, source(1).min), std::min(source(0).max, source(1).max)};
      case Op::Where:
        if (source(0).is_point()) return source(source(0).min ? 1 : 2);
        return source(1) | source(2);
      default: return {};
    }
  }

  // The interval of a - b.
  Interval difference(NodeRef node, uint64_t size) const {
    Interval minus_one{-1, -1};
    Interval plain = range(node->source(0)) + range(node->source(1)) * minus_one;
    if (size > kLongestSum) return plain;
    LinearForm form = linear_form(node->source(0));
    form.add(linear_form(node->source(1)), -1);
    return plain & of_form(form);
  }

  Interval condition(NodeRef node, uint64_t size) const {
    Interval either{0, 1};
    if (node->op == Op::Const) return truth(!node->arg.bits, node->arg.bits);
    if (node->op == Op::And || node->op == Op::Or || node->op == Op::Xor) {
      Interval a = range(node->source(0)), b = range(node->source(1));
      if (node->op == Op::And) return {std::min(a.min, b.min), std::min(a.max, b.max)};
      if (node->op == Op::Or) return {std::max(a.min, b.min), std::max(a.max, b.max)};
      bool known = a.is_point() && b.is_point();
      return known ? truth(a.min == b.min, a.min != b.min) : either;
    }
    if (node->source_count != 2 || !is_index(node->source(0))) return either;
    Interval d = difference(node, size);
    if (node->op == Op::Lt) return truth(d.max >= 0, d.min < 0);
    if (node->op == Op::Le) return truth(d.max > 0, d.min <= 0);
    if (node->op == Op::Eq) return truth(d != Interval{0, 0}, d.min <= 0 && d.max >= 0);
    return either;
  }

  NodeMap<Facts>& facts_;
  std::vector<NodeRef> stack_;
};

// A node of another graph is answered for, but not remembered: it may be gone before this graph is.
Facts facts_of(NodeRef node) {
  Graph& graph = current_graph();
  NodeMap<Facts>& facts = graph.memory<FactTable>().facts;
  if (const Facts* known = facts.find(node)) return *known;
  if (graph.owns(node)) return FactBuilder(facts).find(node);
  NodeMap<Facts> others;
  return FactBuilder(others).find(node);
}

// A divisor without its zero, as one interval below and one above it.
std::optional<Interval> below_zero(Interval b) {
  if (b.min >= 0) return std::nullopt;
  return Interval{b.min, std::min<int64_t>(b.max, -1)};
}
std::optional<Interval> above_zero(Interval b) {
  if (b.max <= 0) return std::nullopt;
  return Interval{std::max<int64_t>(b.min, 1), b.max};
}

template <typename Function>
Interval over_both_signs(Interval b, Function function) {
  std::optional<Interval> below = below_zero(b), above = above_zero(b);
  if (below && above) return function(*below) | function(*above);
  if (!below && !above) return {};
  return function(below ? *below : *above);
}

}  // namespace

Interval operator+(Interval a, Interval b) {
  return {add_ends(a.min, b.min), add_ends(a.max, b.max)};
}

Interval operator*(Interval a, Interval b) {
  return around({multiply_ends(a.min, b.min), multiply_ends(a.min, b.max),
                 multiply_ends(a.max, b.min), multiply_ends(a.max, b.max)});
}

Interval operator&(Interval a, Interval b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

Interval operator|(Interval a, Interval b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

Interval floor_div(Interval a, Interval b) {
  return over_both_signs(b, [&](Interval d) {
    return around({divide_ends(a.min, d.min), divide_ends(a.min, d.max), divide_ends(a.max, d.min),
                   divide_ends(a.max, d.max)});
  });
}

// With one quotient q for all of a and one divisor, a - q * b; else between 0 and the divisor.
Interval floor_mod(Interval a, Interval b) {
  return over_both_signs(b, [&](Interval d) {
    if (d.is_point() && a.is_finite() && floor_div(a.min, d.min) == floor_div(a.max, d.min))
      return Interval{floor_mod(a.min, d.min), floor_mod(a.max, d.min)};
    if (d.min > 0) {
      if (a.min >= 0 && a.max < d.min) return a;
      return Interval{0, a.min >= 0 ? std::min(a.max, d.max - 1) : d.max - 1};
    }
    if (a.max <= 0 && a.min > d.max) return a;
    return Interval{a.max <= 0 ? std::max(a.min, d.min + 1) : d.min + 1, 0};
  });
}

Interval bounds(NodeRef expression) { return facts_of(expression).range; }

Interval bounds(const LinearForm& form) {
  if (form.overflow) return {};
  Interval sum{form.constant, form.constant};
  for (const LinearForm::Term& term : form.terms)
    sum = sum + bounds(term.base) * Interval{term.factor, term.factor};
  return sum;
}

bool cannot_overflow(NodeRef expression) { return facts_of(expression).exact; }

uint64_t tree_size(NodeRef expression) { return facts_of(expression).size; }

size_t remembered_facts() { return current_graph().memory<FactTable>().facts.size(); }

// Follows first sources down: an and of tensors is told from an and of conditions by where it ends.
bool is_condition(NodeRef node) {
  constexpr int kDeepest = 64;
  if (node->dtype != DType::Bool || node->rank() != 0) return false;
  for (int depth = 0; depth < kDeepest; ++depth) {
    bool joins = node->op == Op::And || node->op == Op::Or || node->op == Op::Xor;
    if (!joins) break;
    node = node->source(node->source(0)->is_const() ? 1 : 0);
  }
  if (node->op == Op::Const) return true;
  return node->op >= Op::Lt && node->op <= Op::Eq && is_index(node->source(0));
}

}  // namespace anneal
