// And, or, not over comparisons of index expressions.
#include <algorithm>

#include "symbolic/comparison.h"
#include "symbolic/rules.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

using namespace captures;
using namespace rules;

bool is_and(NodeRef node) { return node->op == Op::And; }

NodeRef fold_by_bounds(const Match& m) {
  Interval truth = bounds(m.root());
  return truth.is_point() ? bool_const(truth.point()) : unchanged;
}

NodeRef take_opposite(const Match& m) { return shorter(m.root(), opposite(m[x])); }

// not (a and b) is not a or not b.
NodeRef opposite_of_junction(const Match& m) {
  std::vector<NodeRef> parts = flatten(m[x]->op, m[x]);
  for (NodeRef& part : parts) part = opposite(part);
  return no_longer(m.root(), join(is_and(m[x]) ? Op::Or : Op::And, parts));
}

// Xor of equal conditions is false; a constant comes second.
NodeRef normal_xor(const Match& m) {
  NodeRef a = m.root()->source(0), b = m.root()->source(1);
  if (a == b) return bool_const(false);
  if (is_false(a) || is_false(b)) return is_false(a) ? b : a;
  bool swapped = a->is_const() || (!b->is_const() && b->key < a->key);
  return swapped ? no_longer(m.root(), make(Op::Xor, {b, a})) : unchanged;
}

// Parts in order, each once, without those that do not matter.
NodeRef normal_junction(const Match& m) {
  std::vector<NodeRef> parts = flatten(m.root()->op, m.root());
  std::erase_if(parts,
                [&](NodeRef part) { return is_and(m.root()) ? is_true(part) : is_false(part); });
  if (parts.empty()) return bool_const(is_and(m.root()));
  return no_longer(m.root(), join(m.root()->op, parts));
}

// a and not a; a and (a or b), and the same with and and or exchanged.
NodeRef absorbed(const Match& m) {
  std::vector<NodeRef> parts = flatten(m.root()->op, m.root());
  auto holds = [&](NodeRef node) {
    return std::find(parts.begin(), parts.end(), node) != parts.end();
  };
  Op inner = is_and(m.root()) ? Op::Or : Op::And;
  size_t before = parts.size();
  for (NodeRef part : parts)
    if (holds(opposite(part))) return bool_const(!is_and(m.root()));
  std::vector<NodeRef> kept;
  for (NodeRef part : parts) {
    std::vector<NodeRef> inside = flatten(inner, part);
    bool superfluous = inside.size() > 1 && std::any_of(inside.begin(), inside.end(), holds);
    if (!superfluous) kept.push_back(part);
  }
  return kept.size() < before ? no_longer(m.root(), join(m.root()->op, kept)) : unchanged;
}

// ---- several comparisons of one sum with constants

// What comparisons say of one sum: that it lies in an interval.
struct Range {
  LinearForm sum;  // the first term is positive, no constant
  Interval range;
  std::vector<NodeRef> parts;
};

// The sum and interval of a comparison with a constant. For an or, of its opposite.
std::optional<Range> range_of(NodeRef part, bool opposite_wanted) {
  std::optional<Comparison> comparison = comparison_of(part);
  if (!comparison || comparison->form.terms.empty()) return std::nullopt;
  if (comparison->op == Op::Eq && opposite_wanted) return std::nullopt;
  Range result{comparison->form, {}, {part}};
  int64_t k = comparison->form.constant;
  bool flipped = comparison->form.terms[0].factor < 0;
  result.sum.constant = 0;
  if (flipped) {
    LinearForm sum;
    sum.add(result.sum, -1);
    result.sum = sum;
  }
  if (comparison->op == Op::Eq) {
    result.range = {flipped ? k : -k, flipped ? k : -k};
  } else if (flipped) {  // k < sum
    opposite_wanted ? result.range.max = k : result.range.min = k + 1;
  } else {  // sum < -k
    opposite_wanted ? result.range.min = -k : result.range.max = -k - 1;
  }
  return result;
}

bool same_sum(const LinearForm& a, const LinearForm& b) {
  return std::equal(
      a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
      [](const auto& s, const auto& t) { return s.base == t.base && s.factor == t.factor; });
}

NodeRef below(const LinearForm& a, int64_t sign, int64_t constant) {  // sign * a + constant < 0
  LinearForm form;
  form.add(a, sign);
  form.add(form_of({constant, nullptr}), 1);
  return node_of({Op::Lt, form});
}

// The fewest comparisons that say the same as the range; nothing if no value is in it.
std::optional<std::vector<NodeRef>> parts_of(const Range& range, bool opposites) {
  Interval all = bounds(range.sum), here = range.range & all;
  if (here.min > here.max) return std::nullopt;
  std::vector<NodeRef> parts;
  if (here.is_point() && !opposites) {
    LinearForm form = range.sum;
    form.add(form_of({here.point(), nullptr}), -1);
    return std::vector<NodeRef>{node_of({Op::Eq, form})};
  }
  // min <= sum is min - 1 - sum < 0, its opposite sum - min < 0; and so on.
  if (here.min > all.min)
    parts.push_back(opposites ? below(range.sum, 1, -here.min)
                              : below(range.sum, -1, here.min - 1));
  if (here.max < all.max)
    parts.push_back(opposites ? below(range.sum, -1, here.max)
                              : below(range.sum, 1, -here.max - 1));
  return parts;
}

NodeRef merge_ranges(const Match& m) {
  bool opposites = !is_and(m.root());
  std::vector<NodeRef> parts = flatten(m.root()->op, m.root()), result;
  std::vector<Range> ranges;
  for (NodeRef part : parts) {
    std::optional<Range> range = range_of(part, opposites);
    auto known = std::find_if(ranges.begin(), ranges.end(),
                              [&](const Range& r) { return range && same_sum(r.sum, range->sum); });
    if (!range) {
      result.push_back(part);
    } else if (known == ranges.end()) {
      ranges.push_back(*range);
    } else {
      known->range = known->range & range->range;
      known->parts.push_back(part);
    }
  }
  for (const Range& range : ranges) {
    std::optional<std::vector<NodeRef>> fewer =
        range.parts.size() > 1 ? parts_of(range, opposites) : range.parts;
    if (!fewer) return bool_const(opposites);
    if (fewer->size() >= range.parts.size()) fewer = range.parts;
    result.insert(result.end(), fewer->begin(), fewer->end());
  }
  if (result.size() == parts.size()) return unchanged;
  if (result.empty()) return bool_const(!opposites);
  return no_longer(m.root(), join(m.root()->op, result));
}

}  // namespace

const RuleSet& index_condition_rules() {
  static const Pattern junction = any_of({Op::And, Op::Or}).when(is_safe_condition);
  static const Pattern exclusive = any_of({Op::Xor}).when(is_safe_condition);
  static const Pattern any = any_of({Op::And, Op::Or, Op::Xor}).when(is_safe_condition);
  static const Pattern no = op(Op::Xor, x, 1).when(is_safe_condition);
  static const Pattern no_junction =
      op(Op::Xor, any_of({Op::And, Op::Or}).as(x), 1).when(is_safe_condition);
  // clang-format off
  static const RuleSet rules{"index-conditions", {
      {"fold-by-bounds",       any, fold_by_bounds},                // x == y & false -> false
      {"normal-xor",           exclusive, normal_xor},              // x == y ^ false -> x == y
      {"opposite",             no, take_opposite},                  // not (x < 5) -> 4 < x
      {"opposite-of-junction", no_junction, opposite_of_junction},  // de Morgan
      {"normal-junction",      junction, normal_junction},          // a & b & a -> a & b
      {"absorbed",             junction, absorbed},                 // a & (a | b) -> a
      {"merge-ranges",         junction, merge_ranges},             // x < 5 & x < 3 -> x < 3
  }};
  // clang-format on
  return rules;
}

}  // namespace anneal
