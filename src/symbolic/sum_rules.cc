// Sums, products, minima, maxima and choices of index expressions.
#include <algorithm>
#include <optional>

#include "symbolic/rules.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

using namespace captures;
using namespace rules;

NodeRef fold_by_bounds(const Match& m) {
  Interval range = bounds(m.root());
  return range.is_point() ? index_const(range.point()) : unchanged;
}

NodeRef normal_sum(const Match& m) {
  LinearForm form = linear_form(m.root());
  return form.overflow ? unchanged : no_longer(m.root(), from_linear_form(form));
}

NodeRef normal_product(const Match& m) {
  return no_longer(m.root(), index_mul(m.root()->source(0), m.root()->source(1)));
}

// Sums that hold products of several non-constants: (a + b) * n - a * n is b * n.
NodeRef sum_of_products(const Match& m) {
  LinearForm form = linear_form(m.root());
  if (form.overflow || !has_products(form)) return unchanged;
  LinearForm expanded = expand(form);
  return expanded.overflow ? unchanged : shorter(m.root(), compact(expanded));
}

// ---- x // c * c + x % c is x

// A term of a sum that holds one quotient or remainder of x by d:  scale * (x op d).
struct Digit {
  size_t place;  // the term's number in the sum
  NodeRef part;  // x op d
  Monomial scale;

  NodeRef x() const { return part->source(0); }
  NodeRef d() const { return part->source(1); }
};

std::vector<Digit> digits(const LinearForm& form, Op op) {
  std::vector<Digit> found;
  for (size_t i = 0; i < form.terms.size(); ++i)
    for (NodeRef factor : factors_of(form.terms[i].base)) {
      if (factor->op != op) continue;
      Monomial term{form.terms[i].factor, form.terms[i].base};
      found.push_back({i, factor, *divide(term, {1, factor})});
    }
  return found;
}

LinearForm scaled(NodeRef node, const Monomial& scale) {
  LinearForm form;
  form.add(linear_form(scale.base ? index_mul(node, scale.base) : node), scale.factor);
  return form;
}

// The sum without the terms of two digits, with another expression times `scale` in their place.
NodeRef replace_digits(NodeRef sum, const LinearForm& form, const Digit& a, const Digit& b,
                       NodeRef by, const Monomial& scale) {
  LinearForm rest = form;
  rest.terms[a.place].factor = rest.terms[b.place].factor = 0;
  std::erase_if(rest.terms, [](const LinearForm::Term& term) { return term.factor == 0; });
  rest.add(scaled(by, scale), 1);
  return rest.overflow ? unchanged : shorter(sum, from_linear_form(rest));
}

// The form s with  quotient == sign * (x // d) + s,  for a quotient written as it may have been
// simplified: x shifted by multiples of d, and x // a // d as x // (a * d).
std::optional<LinearForm> quotient_shift(NodeRef quotient, NodeRef x, NodeRef d, int64_t sign) {
  LinearForm numerator = linear_form(x), divisor = expand(d);
  if (numerator.terms.size() == 1 && numerator.terms[0].factor == 1 &&
      numerator.terms[0].base->op == Op::FloorDiv && is_positive(d)) {
    NodeRef inner = numerator.terms[0].base;
    LinearForm shift = scaled(inner->source(1), {numerator.constant, nullptr});
    numerator = linear_form(inner->source(0));
    numerator.add(shift, 1);
    divisor = multiply(divisor, expand(inner->source(1)));
  }
  LinearForm same_divisor = divisor;
  same_divisor.add(expand(quotient->source(1)), -1);
  if (!is_zero(same_divisor)) return std::nullopt;
  // p // d with p = x + t is x // d + t / d; with p = d - 1 - x + t it is -(x // d) + t / d.
  LinearForm t = linear_form(quotient->source(0));
  t.add(numerator, -sign);
  if (sign < 0 && !is_positive(d)) return std::nullopt;
  if (sign < 0) {
    t.add(divisor, -1);
    t.add(form_of({1, nullptr}), 1);
  }
  Division shift = divide(expand(t), divisor);
  return is_zero(shift.rest) ? std::optional(shift.quotient) : std::nullopt;
}

// scale * (x % d) + scale * d * (x // d), and with (x // d) % e instead of the quotient.
NodeRef recombine_with(NodeRef sum, const LinearForm& form, const Digit& low, const Digit& high) {
  LinearForm divisor = expand(low.d()), high_scale = expand(form_of(high.scale));
  LinearForm step = multiply(divisor, form_of(low.scale));
  for (int64_t sign : {1, -1}) {
    LinearForm difference = high_scale;
    difference.add(step, -sign);
    if (!is_zero(difference)) continue;
    bool partial = high.part->op == Op::Mod;
    NodeRef quotient = partial ? high.x() : high.part;
    if (partial && (sign < 0 || quotient->op != Op::FloorDiv || !is_positive(high.d()))) continue;
    std::optional<LinearForm> shift = quotient_shift(quotient, low.x(), low.d(), sign);
    if (!shift) continue;
    // quotient == sign * (x // d) + shift, so the two make x + sign * shift * d.
    LinearForm whole = expand(low.x());
    whole.add(multiply(divisor, *shift), sign);
    if (whole.overflow) continue;
    NodeRef x = compact(whole);
    NodeRef by = partial ? index_mod(x, index_mul(low.d(), high.d())) : x;
    if (NodeRef result = replace_digits(sum, form, low, high, by, low.scale)) return result;
  }
  return unchanged;
}

NodeRef recombine(const Match& m, Op high_op) {
  LinearForm form = linear_form(m.root());
  if (form.overflow || form.terms.size() < 2) return unchanged;
  std::vector<Digit> lows = digits(form, Op::Mod);
  if (lows.empty()) return unchanged;
  for (const Digit& low : lows)
    for (const Digit& high : digits(form, high_op))
      if (low.place != high.place)
        if (NodeRef result = recombine_with(m.root(), form, low, high)) return result;
  return unchanged;
}

NodeRef recombine_quotient(const Match& m) { return recombine(m, Op::FloorDiv); }
NodeRef recombine_digits(const Match& m) { return recombine(m, Op::Mod); }

// x - x // d * d is x % d.
NodeRef remainder_of_sum(const Match& m) {
  LinearForm form = linear_form(m.root());
  if (form.overflow || form.terms.size() < 2) return unchanged;
  for (const Digit& quotient : digits(form, Op::FloorDiv)) {
    Division scale = divide(expand(form_of(quotient.scale)), expand(quotient.d()));
    if (!is_zero(scale.rest) || is_zero(scale.quotient)) continue;
    LinearForm rest = form;
    rest.terms.erase(rest.terms.begin() + static_cast<long>(quotient.place));
    NodeRef remainder = index_mod(quotient.x(), quotient.d());
    rest.add(multiply(linear_form(quotient.x()), scale.quotient), 1);
    rest.add(multiply(linear_form(remainder), scale.quotient), -1);
    if (rest.overflow) continue;
    if (NodeRef result = shorter(m.root(), from_linear_form(rest))) return result;
  }
  return unchanged;
}

// ---- minima and maxima

NodeRef normal_extremum(const Match& m) {
  return no_longer(m.root(), join(m.root()->op, flatten(m.root()->op, m.root())));
}

// Whether a >= b everywhere.
bool at_least(NodeRef a, NodeRef b) {
  LinearForm difference = linear_form(a);
  difference.add(linear_form(b), -1);
  return never_negative(difference);
}

NodeRef drop_dominated(const Match& m) {
  Op which = m.root()->op;
  std::vector<NodeRef> parts = flatten(which, m.root());
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = 0; j < parts.size(); ++j) {
      if (i == j) continue;
      bool dominated =
          which == Op::Max ? at_least(parts[j], parts[i]) : at_least(parts[i], parts[j]);
      if (!dominated) continue;
      parts.erase(parts.begin() + static_cast<long>(i));
      return no_longer(m.root(), join(which, parts));
    }
  return unchanged;
}

// What two sums share is taken out of them and answered.
LinearForm take_out_common_terms(LinearForm& a, LinearForm& b) {
  LinearForm common;
  for (const LinearForm::Term& term : a.terms)
    for (const LinearForm::Term& other : b.terms)
      if (term.base == other.base && term.factor == other.factor) common.terms.push_back(term);
  if (a.constant == b.constant) common.constant = a.constant;
  a.add(common, -1);
  b.add(common, -1);
  return common;
}

NodeRef common_terms_of_extremum(const Match& m) {
  LinearForm a = linear_form(m.root()->source(0)), b = linear_form(m.root()->source(1));
  if (a.overflow || b.overflow) return unchanged;
  LinearForm common = take_out_common_terms(a, b);
  NodeRef inner = make(m.root()->op, {from_linear_form(a), from_linear_form(b)});
  common.add(form_of({1, inner}), 1);
  return shorter(m.root(), from_linear_form(common));
}

// ---- choices

NodeRef choose_known(const Match& m) {
  Interval condition = bounds(m[x]);
  return condition.is_point() ? m.root()->source(condition.point() ? 1 : 2) : unchanged;
}

NodeRef choose_by_negation(const Match& m) { return make(Op::Where, {m[x], m[z], m[y]}); }

// In the arm where the condition holds, the same choice again is already made.
NodeRef choose_twice(const Match& m) {
  NodeRef condition = m[x], yes = m[y], no = m[z];
  if (yes->op == Op::Where && yes->source(0) == condition) yes = yes->source(1);
  if (no->op == Op::Where && no->source(0) == condition) no = no->source(2);
  return no_longer(m.root(), make(Op::Where, {condition, yes, no}));
}

NodeRef common_terms_of_choice(const Match& m) {
  LinearForm a = linear_form(m[y]), b = linear_form(m[z]);
  if (a.overflow || b.overflow) return unchanged;
  LinearForm common = take_out_common_terms(a, b);
  NodeRef inner = make(Op::Where, {m[x], from_linear_form(a), from_linear_form(b)});
  common.add(form_of({1, inner}), 1);
  return shorter(m.root(), from_linear_form(common));
}

Pattern where(const Pattern& condition, const Pattern& a, const Pattern& b) {
  return op(Op::Where, condition, a, b).when(is_safe_index);
}

}  // namespace

const RuleSet& index_sum_rules() {
  static const Pattern sum = any_of({Op::Add}).when(is_safe_index);
  static const Pattern extremum = any_of({Op::Max, Op::Min}).when(is_safe_index);
  static const Pattern any =
      any_of({Op::Variable, Op::Add, Op::Mul, Op::FloorDiv, Op::Mod, Op::Max, Op::Min, Op::Where})
          .when(is_safe_index);
  static const Pattern product = any_of({Op::Mul}).when(is_safe_index);
  static const Pattern linear = any_of({Op::Add, Op::Mul}).when(is_safe_index);
  static const Pattern choice = where(x, y, z);
  // clang-format off
  static const RuleSet rules{"index-sums", {
      {"fold-by-bounds",      any, fold_by_bounds},                 // 2*3 + 4 -> 10
      {"normal-sum",          linear, normal_sum},                  // x + y + x -> 2*x + y
      {"normal-product",      product, normal_product},             // (3*x)*(5*y) -> x*y*15
      {"sum-of-products",     sum, sum_of_products},                // (x + y)*n - x*n -> y*n
      {"recombine-quotient",  sum, recombine_quotient},             // x//c*c + x%c -> x
      {"recombine-digits",    sum, recombine_digits},               // (x//c%d)*c + x%c -> x%(c*d)
      {"remainder-of-sum",    sum, remainder_of_sum},               // x - x//c*c -> x%c
      {"normal-extremum",     extremum, normal_extremum},           // max(x, max(y, x))
      {"drop-dominated",      extremum, drop_dominated},            // max(x, x + 1) -> x + 1
      {"common-terms",        extremum, common_terms_of_extremum},  // max(x + z, y + z)
      {"choose-known",        choice, choose_known},
      {"choose-equal",        where(x, y, y), [](const Match& m) { return m[y]; }},
      {"choose-by-negation",  where(op(Op::Xor, x, 1), y, z), choose_by_negation},
      {"choose-twice",        choice, choose_twice},
      {"choose-common-terms", choice, common_terms_of_choice},      // where(c, x+z, y+z)
  }};
  // clang-format on
  return rules;
}

}  // namespace anneal
