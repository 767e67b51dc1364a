// Comparisons of index expressions, by the linear form of the difference of their sides.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "symbolic/comparison.h"
#include "symbolic/rules.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace rules {
namespace {

constexpr int64_t kLargest = int64_t{1} << 60;

LinearForm negated(const LinearForm& form) {
  LinearForm result;
  result.add(form, -1);
  return result;
}

// g * s + k < 0 is s + floor(k / g) < 0;  g * s + k == 0 is s + k / g == 0, or false.
void divide_by_common_factor(Comparison& comparison) {
  LinearForm& form = comparison.form;
  int64_t g = 0;
  for (const LinearForm::Term& term : form.terms) g = std::gcd(g, term.factor);
  if (g <= 1) return;
  if (comparison.op == Op::Eq && floor_mod(form.constant, g) != 0) {
    form = form_of({1, nullptr});
    return;
  }
  for (LinearForm::Term& term : form.terms) term.factor /= g;
  form.constant = floor_div(form.constant, g);
}

bool is_small(const LinearForm& form) {
  if (form.overflow || std::abs(form.constant) > kLargest) return false;
  return std::all_of(form.terms.begin(), form.terms.end(),
                     [](const auto& term) { return std::abs(term.factor) <= kLargest; });
}

// The positive terms, and the negative ones negated.
struct Sides {
  LinearForm left, right;
};
Sides sides_of(const LinearForm& form) {
  Sides sides;
  for (const LinearForm::Term& term : form.terms) {
    Monomial part{std::abs(term.factor), term.base};
    (term.factor > 0 ? sides.left : sides.right).add(form_of(part), 1);
  }
  return sides;
}

}  // namespace

std::optional<Comparison> comparison_of(NodeRef node) {
  bool compares = node->op == Op::Lt || node->op == Op::Le || node->op == Op::Eq;
  if (!compares || !is_index(node->source(0))) return std::nullopt;
  Comparison comparison{node->op == Op::Eq ? Op::Eq : Op::Lt, linear_form(node->source(0))};
  comparison.form.add(linear_form(node->source(1)), -1);
  if (node->op == Op::Le) comparison.form.add(form_of({-1, nullptr}), 1);
  if (!is_small(comparison.form)) return std::nullopt;
  divide_by_common_factor(comparison);
  return comparison;
}

NodeRef node_of(const Comparison& comparison) {
  bool equality = comparison.op == Op::Eq;
  LinearForm form = comparison.form;
  if (form.terms.empty()) return bool_const(equality ? form.constant == 0 : form.constant < 0);
  if (equality && form.terms[0].factor < 0) form = negated(form);
  auto [left, right] = sides_of(form);
  int64_t k = form.constant;
  Op op = comparison.op;
  if (right.terms.empty()) {
    right.constant = -k;
  } else if (left.terms.empty()) {
    left.constant = k;
  } else if (k == -1 && op == Op::Lt) {
    op = Op::Le;
  } else {
    (k > 0 ? left : right).constant = std::abs(k);
  }
  NodeRef a = compact(left), b = compact(right);
  if (equality && !is_static(b) && b->key < a->key) std::swap(a, b);
  return make(op, {a, b});
}

std::optional<bool> decide(const Comparison& comparison) {
  // form >= 1, form <= -1, and for an inequality form >= 0.
  LinearForm above = comparison.form, below = negated(comparison.form);
  below.add(form_of({1, nullptr}), -1);
  if (comparison.op == Op::Lt) {
    if (never_negative(above)) return false;
    if (never_negative(below)) return true;
    return std::nullopt;
  }
  if (is_zero(above)) return true;
  above.add(form_of({1, nullptr}), -1);
  if (never_negative(above) || never_negative(below)) return false;
  return std::nullopt;
}

NodeRef opposite(NodeRef condition) {
  if (condition->is_const()) return bool_const(!condition->arg.bits);
  if (condition->op == Op::Xor && is_true(condition->source(1))) return condition->source(0);
  bool ordered = condition->op == Op::Lt || condition->op == Op::Le;
  if (ordered && is_index(condition->source(0)))
    return make(condition->op == Op::Lt ? Op::Le : Op::Lt,
                {condition->source(1), condition->source(0)});
  return negation(condition);
}

}  // namespace rules

namespace {

using namespace captures;
using namespace rules;

NodeRef decided(const Match& m) {
  Interval truth = bounds(m.root());
  if (truth.is_point()) return bool_const(truth.point());
  std::optional<Comparison> comparison = comparison_of(m.root());
  std::optional<bool> value = comparison ? decide(*comparison) : std::nullopt;
  return value ? bool_const(*value) : unchanged;
}

NodeRef normal_comparison(const Match& m) {
  std::optional<Comparison> comparison = comparison_of(m.root());
  if (!comparison) return unchanged;
  Comparison expanded{comparison->op, expand(comparison->form)};
  if (NodeRef result = no_longer(m.root(), node_of(expanded))) return result;
  return no_longer(m.root(), node_of(*comparison));
}

// 4 * a + b < 12 with b in 0..3 is a < 3; 4 * a + b == 2 with b in 0..1 never holds.
NodeRef low_part(const Match& m) {
  std::optional<Comparison> comparison = comparison_of(m.root());
  if (!comparison || comparison->form.terms.size() < 2) return unchanged;
  for (const LinearForm::Term& candidate : comparison->form.terms) {
    int64_t g = std::abs(candidate.factor);
    if (g <= 1) continue;
    LinearForm high, low;
    for (const LinearForm::Term& term : comparison->form.terms) {
      bool exact = term.factor % g == 0;
      (exact ? high : low).add(form_of({exact ? term.factor / g : term.factor, term.base}), 1);
    }
    low.constant = comparison->form.constant;
    Interval range = bounds(low);
    if (!range.is_finite()) continue;
    if (comparison->op == Op::Eq) {
      if (floor_div(range.max, g) * g < range.min) return bool_const(false);
      continue;
    }
    Interval quotient = floor_div(range, {g, g});
    if (!quotient.is_point()) continue;
    high.constant = quotient.point();
    if (NodeRef result = no_longer(m.root(), node_of({Op::Lt, high}))) return result;
  }
  return unchanged;
}

// x // d < k is x < k * d;  k < x // d is (k + 1) * d - 1 < x.
NodeRef compared_quotient(const Match& m) {
  std::optional<Comparison> comparison = comparison_of(m.root());
  if (!comparison || comparison->op != Op::Lt || comparison->form.terms.size() != 1)
    return unchanged;
  auto [quotient, factor] = comparison->form.terms[0];
  if (quotient->op != Op::FloorDiv || std::abs(factor) != 1) return unchanged;
  NodeRef divisor = quotient->source(1);
  if (!is_static(divisor) || static_value(divisor) <= 0) return unchanged;
  int64_t d = static_value(divisor), k = comparison->form.constant;
  LinearForm form;  // x + k * d < 0, or (k + 1) * d - 1 - x < 0
  form.add(linear_form(quotient->source(0)), factor);
  form.add(form_of({d, nullptr}), factor > 0 ? k : k + 1);
  if (factor < 0) form.add(form_of({-1, nullptr}), 1);
  if (!is_small(form)) return unchanged;
  return no_longer(m.root(), node_of({Op::Lt, form}));
}

}  // namespace

const RuleSet& index_comparison_rules() {
  static const Pattern any = any_of({Op::Lt, Op::Le, Op::Eq}).when(is_safe_comparison);
  static const Pattern order = any_of({Op::Lt, Op::Le}).when(is_safe_comparison);
  // clang-format off
  static const RuleSet rules{"index-comparison", {
      {"decided",            any, decided},              // x < 8 with x in 0..7    -> true
      {"normal-comparison",  any, normal_comparison},    // 2*x + 3 <= 2*y          -> x + 1 < y
      {"low-part",           any, low_part},             // 4*x + y < 12            -> x < 3
      {"compared-quotient",  order, compared_quotient},  // x//4 < 3                -> x < 12
  }};
  // clang-format on
  return rules;
}

}  // namespace anneal
