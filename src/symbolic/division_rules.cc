// Floor division and its remainder. Throughout, x is the numerator, d the divisor, which is not 0.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "symbolic/rules.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

using namespace captures;
using namespace rules;

bool is_quotient(NodeRef node) { return node->op == Op::FloorDiv; }

NodeRef divided(NodeRef a, NodeRef b) { return index_floor_div(a, b); }

bool is_number(NodeRef node, int64_t value) {
  return is_static(node) && static_value(node) == value;
}

// ---- the value is known

NodeRef by_one(const Match& m) {
  if (is_number(m[y], 1)) return m[x];
  return is_number(m[y], -1) ? no_longer(m.root(), index_mul(m[x], index_const(-1))) : unchanged;
}

// x - q * d, or q itself, where q is the quotient.
NodeRef with_quotient(NodeRef root, int64_t q) {
  if (is_quotient(root)) return no_longer(root, index_const(q));
  LinearForm rest = linear_form(root->source(0));
  rest.add(linear_form(root->source(1)), -q);
  return rest.overflow ? unchanged : no_longer(root, from_linear_form(rest));
}

// All of x lies between two multiples of d.
NodeRef one_quotient(const Match& m) {
  Interval quotient = floor_div(bounds(m[x]), bounds(m[y]));
  if (quotient.is_point()) return with_quotient(m.root(), quotient.point());
  if (is_static(m[y]) && limits_key() == Key{}) return unchanged;  // the bounds said it all
  return lies_below(expand(m[x]), expand(m[y])) ? with_quotient(m.root(), 0) : unchanged;
}

// (5 * a) // 4 with a below 4 is a: factors are replaced by what they leave modulo d, of either
// sign.
NodeRef congruent(const Match& m) {
  if (!is_static(m[y]) || static_value(m[y]) <= 1) return unchanged;
  constexpr int64_t kLargestFactor = int64_t{1} << 60;
  int64_t d = static_value(m[y]);
  LinearForm numerator = linear_form(m[x]);
  if (numerator.overflow || d > kLargestFactor) return unchanged;
  for (bool negative_halves : {false, true}) {
    LinearForm rest, whole;
    rest.constant = floor_mod(numerator.constant, d);
    whole.constant = floor_div(numerator.constant, d);
    for (const LinearForm::Term& term : numerator.terms) {
      if (std::abs(term.factor) > kLargestFactor) return unchanged;
      int64_t r = floor_mod(term.factor, d);
      bool smaller = numerator.terms.size() == 1 || r >= d - r;
      if (negative_halves && smaller && r != 0) r -= d;
      rest.add(form_of({r, term.base}), 1);
      whole.add(form_of({(term.factor - r) / d, term.base}), 1);
    }
    Interval q = floor_div(bounds(rest), {d, d});
    if (!q.is_point() || !q.is_finite()) continue;
    whole.add(form_of({q.point(), nullptr}), 1);
    rest.add(form_of({d, nullptr}), -q.point());
    NodeRef result = from_linear_form(is_quotient(m.root()) ? whole : rest);
    if (NodeRef accepted = no_longer(m.root(), result)) return accepted;
  }
  return unchanged;
}

// ---- parts of the sum are multiples of the divisor

NodeRef exact_terms_of(const Match& m, const LinearForm& numerator, const LinearForm& divisor) {
  Division division = divide(numerator, divisor);
  if (is_zero(division.quotient) || division.rest.overflow || division.quotient.overflow)
    return unchanged;
  NodeRef rest = compact(division.rest);
  if (!is_quotient(m.root())) return no_longer(m.root(), index_mod(rest, m[y]));
  return no_longer(m.root(), index_add(compact(division.quotient), divided(rest, m[y])));
}

// (a * d + b) // d is a + b // d, and its remainder is b % d.
NodeRef exact_terms(const Match& m) {
  LinearForm numerator = linear_form(m[x]), divisor = expand(m[y]);
  if (numerator.overflow || divisor.overflow) return unchanged;
  if (NodeRef result = exact_terms_of(m, numerator, divisor)) return result;
  return has_products(numerator) ? exact_terms_of(m, expand(numerator), divisor) : unchanged;
}

// Modulo 4, 9 * a + 7 is a + 3.
NodeRef reduced_factors(const Match& m) {
  int64_t d = static_value(m[c]);
  LinearForm numerator = linear_form(m[x]), reduced;
  if (d == 0 || d == std::numeric_limits<int64_t>::min() || numerator.overflow) return unchanged;
  reduced.constant = floor_mod(numerator.constant, d);
  for (const LinearForm::Term& term : numerator.terms) {
    bool large = term.factor >= std::abs(d) || term.factor <= -std::abs(d);
    int64_t r = large ? floor_mod(term.factor, std::abs(d)) : term.factor;
    if (large && r > std::abs(d) - r) r -= std::abs(d);
    reduced.add(form_of({r, term.base}), 1);
  }
  return no_longer(m.root(), index_mod(from_linear_form(reduced), m[c]));
}

// x = g * n + t with 0 <= t < g, d = g * e: the quotient is n // e, the remainder n % e * g + t.
struct LowPart {
  LinearForm n, t;
};

std::optional<LowPart> split_low_part(const LinearForm& numerator, const Monomial& g) {
  LowPart parts;
  for (const LinearForm::Term& term : numerator.terms) {
    Monomial monomial{term.factor, term.base};
    std::optional<Monomial> part = divide(monomial, g);
    (part ? parts.n : parts.t).add(form_of(part ? *part : monomial), 1);
  }
  parts.t.constant = numerator.constant;
  LinearForm step = form_of(g);
  if (!g.base) {
    Interval q = floor_div(bounds(parts.t), {g.factor, g.factor});
    if (!q.is_point() || !q.is_finite()) return std::nullopt;
    parts.n.add(form_of({q.point(), nullptr}), 1);
    parts.t.add(step, -q.point());
    return parts;
  }
  return lies_below(parts.t, step) ? std::optional(parts) : std::nullopt;
}

std::vector<Monomial> factors_in_common(const LinearForm& numerator, const LinearForm& divisor) {
  Monomial whole = content(divisor);
  std::vector<Monomial> found;
  for (const LinearForm::Term& term : numerator.terms) {
    Monomial g = common_factor(whole, {term.factor, term.base});
    if (g.is_one() || std::find(found.begin(), found.end(), g) != found.end()) continue;
    found.push_back(g);
  }
  // Large steps leave the shortest quotients.
  std::sort(found.begin(), found.end(), [](const Monomial& a, const Monomial& b) {
    if (a.factor != b.factor) return a.factor > b.factor;
    return a.base && (!b.base || a.base->key < b.base->key);
  });
  return found;
}

NodeRef low_part_of(const Match& m, const LinearForm& numerator, const LinearForm& divisor) {
  for (const Monomial& g : factors_in_common(numerator, divisor)) {
    if (g.base && !is_positive(g.base)) continue;
    std::optional<LinearForm> e = divide(divisor, g);
    std::optional<LowPart> parts = e ? split_low_part(numerator, g) : std::nullopt;
    if (!parts || parts->n.overflow || parts->t.overflow) continue;
    NodeRef smaller_divisor = compact(*e), n = compact(parts->n);
    if (!is_zero(parts->t) && !is_positive(smaller_divisor)) continue;
    NodeRef result = nullptr;
    if (is_quotient(m.root())) {
      result = divided(n, smaller_divisor);
    } else {
      NodeRef high = index_mul(index_mod(n, smaller_divisor), compact(form_of(g)));
      result = index_add(high, compact(parts->t));
    }
    if (NodeRef accepted = no_longer(m.root(), result)) return accepted;
  }
  return unchanged;
}

// As it is written first: multiplied out, a product of sums may be too long to be worth it.
NodeRef low_part(const Match& m) {
  LinearForm numerator = linear_form(m[x]), divisor = expand(m[y]);
  if (numerator.overflow || divisor.overflow) return unchanged;
  if (NodeRef result = low_part_of(m, numerator, divisor)) return result;
  return has_products(numerator) ? low_part_of(m, expand(numerator), divisor) : unchanged;
}

// ---- division inside division

// (x // a + k) // b is (x + k * a) // (a * b), b > 0.
NodeRef quotient_of_quotient(const Match& m) {
  LinearForm numerator = linear_form(m[x]);
  bool nested = !numerator.overflow && numerator.terms.size() == 1 &&
                numerator.terms[0].factor == 1 && is_quotient(numerator.terms[0].base);
  if (!nested || !is_positive(m[y])) return unchanged;
  NodeRef inner = numerator.terms[0].base;
  NodeRef shift = index_mul(inner->source(1), index_const(numerator.constant));
  NodeRef sum = index_add(inner->source(0), shift);
  return no_longer(m.root(), divided(sum, index_mul(inner->source(1), m[y])));
}

// (x % a) // b, where b divides a, is x // b % (a / b).
NodeRef quotient_of_remainder(const Match& m) {
  Division ratio = divide(expand(m[y]), expand(m[z]));
  if (!is_zero(ratio.rest) || is_zero(ratio.quotient) || ratio.quotient.overflow) return unchanged;
  NodeRef steps = compact(ratio.quotient);
  if (!is_positive(steps)) return unchanged;
  return no_longer(m.root(), index_mod(divided(m[x], m[z]), steps));
}

// (x % a + y) % b, where b divides a, is (x + y) % b.
NodeRef remainder_of_remainder(const Match& m) {
  LinearForm numerator = linear_form(m[x]);
  if (numerator.overflow) return unchanged;
  LinearForm divisor = expand(m[y]);
  for (const LinearForm::Term& term : numerator.terms) {
    if (term.base->op != Op::Mod) continue;
    LinearForm period;
    period.add(expand(term.base->source(1)), term.factor);
    Division ratio = divide(period, divisor);
    if (!is_zero(ratio.rest) || ratio.quotient.overflow) continue;
    LinearForm without = numerator;
    without.add(form_of({1, term.base}), -term.factor);
    without.add(linear_form(term.base->source(0)), term.factor);
    if (without.overflow) continue;
    NodeRef result = index_mod(from_linear_form(without), m[y]);
    if (NodeRef accepted = no_longer(m.root(), result)) return accepted;
  }
  return unchanged;
}

// ---- signs

// Whether the sum reads better negated: more of its terms are subtracted than added.
bool leads_negative(const LinearForm& form) {
  long negative = std::count_if(form.terms.begin(), form.terms.end(),
                                [](const auto& term) { return term.factor < 0; });
  long positive = static_cast<long>(form.terms.size()) - negative;
  return negative > positive || (negative == positive && negative > 0 && form.terms[0].factor < 0);
}

// (k - x) // d is -((x + d - 1 - k) // d), and (k - x) % d is d - 1 - (x + d - 1 - k) % d, d > 0.
NodeRef negative_numerator(const Match& m) {
  LinearForm numerator = linear_form(m[x]), negated = form_of({-1, nullptr});
  if (numerator.overflow || !leads_negative(numerator) || !is_positive(m[y])) return unchanged;
  LinearForm divisor = linear_form(m[y]);
  negated.add(divisor, 1);
  negated.add(numerator, -1);
  // A multiple of d in the constant would only come out again.
  LinearForm whole = form_of({0, nullptr});
  if (is_constant(divisor) && floor_mod(negated.constant, divisor.constant) == 0) {
    whole.constant = floor_div(negated.constant, divisor.constant);
    negated.constant = 0;
  }
  if (negated.overflow) return unchanged;
  NodeRef positive = from_linear_form(negated);
  LinearForm result;
  if (is_quotient(m.root())) {
    result.add(linear_form(divided(positive, m[y])), -1);
    result.add(whole, -1);
  } else {
    result = divisor;
    result.add(form_of({1, nullptr}), -1);
    result.add(linear_form(index_mod(positive, m[y])), -1);
  }
  return result.overflow ? unchanged : no_longer(m.root(), from_linear_form(result));
}

}  // namespace

const RuleSet& index_division_rules() {
  static const Pattern either = any_of({Op::FloorDiv, Op::Mod}, x, y).when(is_safe_index);
  static const Pattern quotient = floor_div(x, y).when(is_safe_index);
  static const Pattern remainder = mod(x, y).when(is_safe_index);
  static const Pattern by_constant = mod(x, c).when(is_safe_index);
  static const Pattern of_remainder = floor_div(mod(x, y), z).when(is_safe_index);
  // clang-format off
  static const RuleSet rules{"index-division", {
      {"by-one",                 quotient, by_one},                     // x//1 -> x
      {"one-quotient",           either, one_quotient},                 // (a + 8)%8 -> a
      {"exact-terms",            either, exact_terms},                  // (8*x + y)//8 -> x + y//8
      {"reduced-factors",        by_constant, reduced_factors},         // (9*x + 7)%4 -> (x + 3)%4
      {"remainder-of-remainder", remainder, remainder_of_remainder},    // (x%12 + y)%4 -> (x + y)%4
      {"quotient-of-quotient",   quotient, quotient_of_quotient},       // x//4//3 -> x//12
      {"quotient-of-remainder",  of_remainder, quotient_of_remainder},  // x%12//4 -> x//4%3
      {"low-part",               either, low_part},                     // (4*x + b)//8 -> x//2
      {"congruent",              either, congruent},                    // 5*b//4 -> b
      {"negative-numerator",     either, negative_numerator},           // (99 - x)//4 -> 24 - x//4
  }};
  // clang-format on
  return rules;
}

}  // namespace anneal
