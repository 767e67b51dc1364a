// Elementwise nodes written as arithmetic, for rules that put a formula in the place of an op.
// Each operator is one node: nothing is folded, reordered or rounded differently than it reads.
#pragma once

#include "ir/build.h"

namespace anneal {

// A node, or a number that takes the dtype and shape of what it meets.
struct Formula {
  NodeRef node;
  explicit Formula(NodeRef the_node) : node(the_node) {}

  DType dtype() const { return node->dtype; }
  Formula number(double value) const { return Formula(make_const_like(node, value)); }
};

#define ANNEAL_FORMULA(name, Name)                                                                \
  inline Formula name(Formula a, Formula b) { return Formula(make(Op::Name, {a.node, b.node})); } \
  inline Formula name(Formula a, double b) { return name(a, a.number(b)); }                       \
  inline Formula name(double a, Formula b) { return name(b.number(a), b); }
ANNEAL_FORMULA(operator+, Add)
ANNEAL_FORMULA(operator*, Mul)
ANNEAL_FORMULA(operator/, Div)
ANNEAL_FORMULA(operator&, And)
ANNEAL_FORMULA(operator|, Or)
ANNEAL_FORMULA(operator^, Xor)
ANNEAL_FORMULA(operator<<, Shl)
ANNEAL_FORMULA(operator>>, Shr)
ANNEAL_FORMULA(operator<, Lt)
ANNEAL_FORMULA(operator==, Eq)
#undef ANNEAL_FORMULA

inline Formula operator-(Formula a) { return Formula(make(Op::Neg, {a.node})); }
inline Formula operator-(Formula a, Formula b) { return a + -b; }
inline Formula operator-(Formula a, double b) { return a + -b; }
inline Formula operator-(double a, Formula b) { return a + -b; }

inline Formula abs(Formula a) { return Formula(make(Op::Abs, {a.node})); }
inline Formula sqrt(Formula a) { return Formula(make(Op::Sqrt, {a.node})); }
inline Formula floor(Formula a) { return Formula(make(Op::Floor, {a.node})); }
inline Formula cast(Formula a, DType dtype) { return Formula(make_cast(a.node, dtype)); }
inline Formula bitcast(Formula a, DType dtype) { return Formula(make_bitcast(a.node, dtype)); }

inline Formula mul_add(Formula a, Formula b, Formula c) {
  return Formula(make(Op::MulAdd, {a.node, b.node, c.node}));
}
inline Formula mul_add(Formula a, Formula b, double c) { return mul_add(a, b, a.number(c)); }
inline Formula mul_add(Formula a, double b, Formula c) { return mul_add(a, a.number(b), c); }
inline Formula mul_add(Formula a, double b, double c) {
  return mul_add(a, a.number(b), a.number(c));
}

// a * 2^b for whole b, rounded once.
inline Formula scale(Formula a, Formula b) { return Formula(make(Op::Scale, {a.node, b.node})); }

inline Formula where(Formula condition, Formula a, Formula b) {
  return Formula(make(Op::Where, {condition.node, a.node, b.node}));
}
inline Formula where(Formula condition, Formula a, double b) {
  return where(condition, a, a.number(b));
}
inline Formula where(Formula condition, double a, Formula b) {
  return where(condition, b.number(a), b);
}

// The smaller, and x where it is NaN: one instruction on machines whose minimum answers its second
// operand then. Op::Min must answer NaN from either side.
inline Formula at_most(Formula x, double bound) { return where(bound < x, bound, x); }
inline Formula at_least(Formula x, double bound) { return where(x < bound, bound, x); }

}  // namespace anneal
