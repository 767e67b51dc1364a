// Linear forms whose bases are monomials: products of sums multiplied out. Division with remainder,
// common factors and the way back to a short node. Decides nothing about values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/index.h"

namespace anneal {

// The factors of a product of non-constants, ordered by key; the node alone if it is none.
std::vector<NodeRef> factors_of(NodeRef base);
// The product of factors in any order; the constant 1 of none.
NodeRef product_of(std::vector<NodeRef> factors);

// An expression as a sum of monomials. Sums that would become too long stay as they are.
LinearForm expand(NodeRef expression);
LinearForm expand(const LinearForm& form);
LinearForm multiply(const LinearForm& a, const LinearForm& b);

// The node of an expanded form, with factors that several monomials share taken out.
NodeRef compact(const LinearForm& form);

// factor * base, where a null base stands for 1.
struct Monomial {
  int64_t factor = 1;
  NodeRef base = nullptr;

  bool is_one() const { return factor == 1 && !base; }
  friend bool operator==(const Monomial&, const Monomial&) = default;
};

LinearForm form_of(const Monomial& monomial);
// Exact quotient, or nothing.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);
std::optional<LinearForm> divide(const LinearForm& form, const Monomial& by);
Monomial common_factor(const Monomial& a, const Monomial& b);
// The largest monomial with a positive factor that divides every term; of no terms, the constant.
Monomial content(const LinearForm& form);

// form == quotient * divisor + rest, where no term of the rest is divisible by the leading term of
// the divisor.
struct Division {
  LinearForm quotient, rest;
};
Division divide(const LinearForm& form, const LinearForm& divisor);

inline bool is_zero(const LinearForm& form) {
  return form.terms.empty() && form.constant == 0 && !form.overflow;
}
// Whether some term is a product of non-constants, which expand() might take apart.
bool has_products(const LinearForm& form);
inline bool is_constant(const LinearForm& form) { return form.terms.empty() && !form.overflow; }

}  // namespace anneal
