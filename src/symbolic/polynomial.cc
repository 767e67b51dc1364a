#include "symbolic/polynomial.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "ir/build.h"

namespace anneal {
namespace {

// Multiplying out stops here: index expressions people write have a handful of terms.
constexpr size_t kMostTerms = 64;

bool key_less(NodeRef a, NodeRef b) { return a->key < b->key; }

bool holds_a_sum(NodeRef base) {
  if (base->op != Op::Mul) return base->op == Op::Add;
  for (NodeRef factor : factors_of(base))
    if (factor->op == Op::Add) return true;
  return false;
}

void add_term(LinearForm& form, const Monomial& monomial) { form.add(form_of(monomial), 1); }

// The monomials of a form, the constant last.
std::vector<Monomial> monomials(const LinearForm& form) {
  std::vector<Monomial> all;
  for (const LinearForm::Term& term : form.terms) all.push_back({term.factor, term.base});
  if (form.constant != 0) all.push_back({form.constant, nullptr});
  return all;
}

size_t degree(NodeRef base) { return base ? factors_of(base).size() : 0; }

// The term of highest degree; of those, the one with the highest key.
Monomial leading_term(const LinearForm& form) {
  Monomial lead{form.constant, nullptr};
  size_t most = 0;
  for (const LinearForm::Term& term : form.terms) {
    size_t here = degree(term.base);
    if (here < most || (here == most && lead.base && term.base->key < lead.base->key)) continue;
    lead = {term.factor, term.base};
    most = here;
  }
  return lead;
}

Division divide_by_constant(const LinearForm& form, int64_t divisor) {
  Division result;
  for (const Monomial& m : monomials(form)) {
    bool exact = divisor != 0 && floor_mod(m.factor, divisor) == 0;
    if (exact) {
      add_term(result.quotient, {floor_div(m.factor, divisor), m.base});
    } else {
      add_term(result.rest, m);
    }
  }
  result.rest.overflow |= form.overflow;
  return result;
}

// The factor that most monomials share, if two do.
NodeRef most_shared_factor(const LinearForm& form) {
  std::vector<NodeRef> all;
  for (const LinearForm::Term& term : form.terms) {
    std::vector<NodeRef> factors = factors_of(term.base);
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    all.insert(all.end(), factors.begin(), factors.end());
  }
  std::sort(all.begin(), all.end(), key_less);
  NodeRef best = nullptr;
  long most = 1;
  for (auto first = all.begin(); first != all.end();) {
    auto last = std::find_if(first, all.end(), [&](NodeRef n) { return n != *first; });
    if (last - first > most) {
      most = last - first;
      best = *first;
    }
    first = last;
  }
  return best;
}

}  // namespace

std::vector<NodeRef> factors_of(NodeRef base) {
  if (base->op != Op::Mul) return {base};
  std::vector<NodeRef> factors, stack{base};
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (node->op == Op::Mul && factors.size() + stack.size() < kMostTerms) {
      stack.push_back(node->source(0));
      stack.push_back(node->source(1));
    } else {
      factors.push_back(node);
    }
  }
  std::sort(factors.begin(), factors.end(), key_less);
  return factors;
}

NodeRef product_of(std::vector<NodeRef> factors) {
  if (factors.empty()) return index_const(1);
  std::sort(factors.begin(), factors.end(), key_less);
  NodeRef product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) product = make(Op::Mul, {product, factors[i]});
  return product;
}

LinearForm form_of(const Monomial& monomial) {
  LinearForm form;
  if (!monomial.base) {
    form.constant = monomial.factor;
  } else if (monomial.factor != 0) {
    form.terms.push_back({monomial.base, monomial.factor});
  }
  return form;
}

LinearForm multiply(const LinearForm& a, const LinearForm& b) {
  LinearForm product;
  product.overflow = a.overflow || b.overflow || a.terms.size() * b.terms.size() > kMostTerms;
  if (product.overflow) return product;
  for (const Monomial& m : monomials(a)) {
    for (const Monomial& n : monomials(b)) {
      std::optional<int64_t> factor = checked_mul(m.factor, n.factor);
      if (!factor) {
        product.overflow = true;
        return product;
      }
      std::vector<NodeRef> factors;
      if (m.base) factors = factors_of(m.base);
      if (n.base)
        for (NodeRef f : factors_of(n.base)) factors.push_back(f);
      add_term(product, {*factor, factors.empty() ? nullptr : product_of(std::move(factors))});
    }
  }
  return product;
}

LinearForm expand(const LinearForm& form) {
  bool plain = std::none_of(form.terms.begin(), form.terms.end(),
                            [](const auto& term) { return holds_a_sum(term.base); });
  if (plain || form.overflow) return form;
  LinearForm expanded;
  expanded.constant = form.constant;
  for (const LinearForm::Term& term : form.terms) {
    LinearForm product = form_of({1, nullptr});
    for (NodeRef factor : factors_of(term.base))
      product = multiply(
          product, factor->op == Op::Add ? expand(linear_form(factor)) : form_of({1, factor}));
    if (product.overflow) product = form_of({1, term.base});
    expanded.add(product, term.factor);
    if (expanded.overflow || expanded.terms.size() > kMostTerms) return form;
  }
  return expanded;
}

bool has_products(const LinearForm& form) {
  return std::any_of(form.terms.begin(), form.terms.end(),
                     [](const auto& term) { return term.base->op == Op::Mul; });
}

LinearForm expand(NodeRef expression) { return expand(linear_form(expression)); }

NodeRef compact(const LinearForm& form) {
  NodeRef shared = has_products(form) ? most_shared_factor(form) : nullptr;
  if (!shared) return from_linear_form(form);
  LinearForm with, without;
  for (const Monomial& m : monomials(form)) {
    std::optional<Monomial> rest = divide(m, {1, shared});
    add_term(rest ? with : without, rest ? *rest : m);
  }
  // Each of the two has fewer factors in all than the form had.
  return index_add(index_mul(compact(with), shared), compact(without));
}

std::optional<Monomial> divide(const Monomial& a, const Monomial& b) {
  if (b.factor == 0 || floor_mod(a.factor, b.factor) != 0) return std::nullopt;
  int64_t factor = floor_div(a.factor, b.factor);
  if (a.base == b.base) return Monomial{factor, nullptr};
  if (!b.base) return Monomial{factor, a.base};
  if (!a.base || (a.base->op != Op::Mul)) return std::nullopt;
  std::vector<NodeRef> mine = factors_of(a.base), theirs = factors_of(b.base), left;
  if (!std::includes(mine.begin(), mine.end(), theirs.begin(), theirs.end(), key_less))
    return std::nullopt;
  std::set_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                      std::back_inserter(left), key_less);
  return Monomial{factor, product_of(std::move(left))};
}

std::optional<LinearForm> divide(const LinearForm& form, const Monomial& by) {
  LinearForm result;
  for (const Monomial& m : monomials(form)) {
    std::optional<Monomial> part = divide(m, by);
    if (!part) return std::nullopt;
    add_term(result, *part);
  }
  result.overflow |= form.overflow;
  return result;
}

Monomial common_factor(const Monomial& a, const Monomial& b) {
  Monomial common{std::gcd(a.factor, b.factor), nullptr};
  if (!a.base || !b.base) return common;
  std::vector<NodeRef> mine = factors_of(a.base), theirs = factors_of(b.base), both;
  std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                        std::back_inserter(both), key_less);
  if (!both.empty()) common.base = product_of(std::move(both));
  return common;
}

Monomial content(const LinearForm& form) {
  std::vector<Monomial> all = monomials(form);
  if (all.empty()) return {0, nullptr};
  Monomial common = all[0];
  for (const Monomial& m : all) common = common_factor(common, m);
  return common;
}

Division divide(const LinearForm& form, const LinearForm& divisor) {
  if (is_constant(divisor)) return divide_by_constant(form, divisor.constant);
  Division result{{}, form};
  Monomial lead = leading_term(divisor);
  // Keys do not order products, so the rest of a sum could come back for ever: a few rounds do.
  for (int round = 0; round < 8; ++round) {
    bool found = false;
    for (const Monomial& m : monomials(result.rest)) {
      std::optional<Monomial> part = divide(m, lead);
      if (!part || part->factor == 0) continue;
      found = true;
      add_term(result.quotient, *part);
      result.rest.add(multiply(form_of(*part), divisor), -1);
    }
    if (!found || result.rest.overflow) break;
  }
  return result;
}

}  // namespace anneal
