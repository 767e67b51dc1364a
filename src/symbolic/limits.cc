#include "symbolic/limits.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "symbolic/bounds.h"
#include "symbolic/polynomial.h"

namespace anneal {
namespace {

struct Scope {
  std::vector<Limit> limits;
  Key key;
};

Scope& scope() {
  thread_local Scope current;
  return current;
}

// The factors a form is made of, those with limits first: n stays until all that lie below it left.
std::vector<NodeRef> atoms_to_eliminate(const LinearForm& form) {
  std::vector<NodeRef> limited, others;
  for (const LinearForm::Term& term : form.terms) {
    std::vector<NodeRef> factors = factors_of(term.base);
    for (NodeRef atom : factors) {
      bool has_limit = limit_of(atom) != nullptr;
      if (!has_limit && factors.size() == 1) continue;  // its bounds say all there is to say
      std::vector<NodeRef>& list = has_limit ? limited : others;
      if (std::find(list.begin(), list.end(), atom) == list.end()) list.push_back(atom);
    }
  }
  limited.insert(limited.end(), others.begin(), others.end());
  return limited;
}

// form == slope * atom + rest; nothing where the atom appears squared.
struct Slope {
  LinearForm slope, rest;
};
std::optional<Slope> slope_in(const LinearForm& form, NodeRef atom) {
  Slope result;
  result.rest.constant = form.constant;
  for (const LinearForm::Term& term : form.terms) {
    Monomial monomial{term.factor, term.base};
    std::optional<Monomial> part = divide(monomial, {1, atom});
    if (part && part->base && divide(*part, {1, atom})) return std::nullopt;
    (part ? result.slope : result.rest).add(form_of(part ? *part : monomial), 1);
  }
  return result;
}

// A form that is nowhere above the given one and does not hold the atom: the atom is put at the end
// of its range where the sum is least.
std::optional<LinearForm> least_over(const LinearForm& form, NodeRef atom) {
  std::optional<Slope> parts = slope_in(form, atom);
  if (!parts || is_zero(parts->slope)) return std::nullopt;
  Interval slope = bounds(parts->slope);
  NodeRef limit = limit_of(atom);
  LinearForm corner;
  if (slope.min >= 0) {
    corner.constant = bounds(atom).min;
    if (limit) corner.constant = std::max<int64_t>(0, corner.constant);
  } else if (slope.max <= 0) {
    corner.constant = limit ? -1 : bounds(atom).max;
    if (limit) corner.add(expand(limit), 1);
  } else {
    return std::nullopt;
  }
  LinearForm least = parts->rest;
  least.add(multiply(parts->slope, corner), 1);
  if (least.overflow) return std::nullopt;
  return least;
}

// Whether the form is never negative by x - k + 1 <= x // k * k <= x alone. Replacing each quotient
// makes a sum that is at most a multiple of the form; the form is an integer, so it is enough that
// the sum stays above minus that multiple.
bool never_negative_by_quotients(LinearForm form) {
  int64_t multiple = 1;
  for (size_t i = 0; i < form.terms.size() && !form.overflow;) {
    auto [base, factor] = form.terms[i];
    bool quotient =
        base->op == Op::FloorDiv && is_static(base->source(1)) && static_value(base->source(1)) > 0;
    if (!quotient) {
      ++i;
      continue;
    }
    int64_t k = static_value(base->source(1));
    std::optional<int64_t> product = checked_mul(multiple, k);
    if (!product) return false;
    multiple = *product;
    LinearForm sum;
    form.add(form_of({1, base}), -factor);
    sum.add(form, k);
    sum.add(linear_form(base->source(0)), factor);
    if (factor > 0) sum.add(form_of({k - 1, nullptr}), -factor);
    form = std::move(sum);
    i = 0;
  }
  return !form.overflow && bounds(form).min > -multiple;
}

}  // namespace

LimitScope::LimitScope(std::span<const Limit> limits)
    : outer_count_(scope().limits.size()), outer_key_(scope().key) {
  if (limits.empty()) return;
  KeyBuilder builder(limits.size());
  builder.add(outer_key_);
  for (const Limit& limit : limits) {
    scope().limits.push_back(limit);
    builder.add(limit.index->key);
    builder.add(limit.size->key);
  }
  scope().key = builder.finish();
}

LimitScope::~LimitScope() {
  scope().limits.resize(outer_count_);
  scope().key = outer_key_;
}

Key limits_key() { return scope().key; }

NodeRef limit_of(NodeRef term) {
  // x // a // b < n holds where x < n * a * b does.
  LinearForm divisor = form_of({1, nullptr});
  for (; term->op == Op::FloorDiv && bounds(term->source(1)).min >= 0; term = term->source(0))
    divisor = multiply(divisor, expand(term->source(1)));
  NodeRef size = nullptr;
  if (term->op == Op::Mod && bounds(term->source(1)).min >= 0) size = term->source(1);
  for (const Limit& limit : scope().limits)
    if (limit.index == term) size = limit.size;
  if (!size || divisor.overflow) return nullptr;
  if (is_constant(divisor) && divisor.constant == 1) return size;
  Division quotient = divide(expand(size), divisor);
  return is_zero(quotient.rest) ? compact(quotient.quotient) : nullptr;
}

bool never_negative(const LinearForm& form) {
  if (form.overflow) return false;
  if (bounds(form).min >= 0) return true;
  LinearForm least = expand(form);
  for (NodeRef atom : atoms_to_eliminate(least)) {
    std::optional<LinearForm> lower = least_over(least, atom);
    if (!lower) continue;
    least = std::move(*lower);
    if (bounds(least).min >= 0) return true;
  }
  // What the corners brought in may be eliminated in turn.
  for (NodeRef atom : atoms_to_eliminate(least)) {
    std::optional<LinearForm> lower = least_over(least, atom);
    if (lower) least = std::move(*lower);
  }
  if (bounds(least).min >= 0) return true;
  return never_negative_by_quotients(form);
}

bool lies_below(const LinearForm& value, const LinearForm& size) {
  LinearForm room = size;
  room.add(form_of({-1, nullptr}), 1);
  room.add(value, -1);
  return never_negative(value) && never_negative(room);
}

}  // namespace anneal
