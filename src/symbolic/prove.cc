#include "symbolic/prove.h"

#include "symbolic/bounds.h"
#include "symbolic/limits.h"
#include "symbolic/polynomial.h"
#include "symbolic/rules.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

NodeRef difference(NodeRef a, NodeRef b) { return simplify(index_sub(simplify(a), simplify(b))); }

// a is at most b plus slack; a maximum is at least each of its parts, a minimum at most.
bool at_most(NodeRef a, NodeRef b, int64_t slack) {
  NodeRef room = difference(b, a);
  LinearForm form = linear_form(room);
  form.add(form_of({slack, nullptr}), 1);
  if (cannot_overflow(room) && never_negative(form)) return true;
  auto any = [&](Op op, NodeRef of, auto holds) {
    if (of->op != op) return false;
    for (NodeRef part : rules::flatten(op, of))
      if (holds(part)) return true;
    return false;
  };
  auto all = [&](Op op, NodeRef of, auto holds) {
    return of->op == op && !any(op, of, [&](NodeRef part) { return !holds(part); });
  };
  auto plainly = [&](NodeRef low, NodeRef high) {
    LinearForm plain = linear_form(difference(high, low));
    plain.add(form_of({slack, nullptr}), 1);
    return never_negative(plain);
  };
  auto above_a = [&](NodeRef part) { return plainly(a, part); };
  auto below_b = [&](NodeRef part) { return plainly(part, b); };
  return any(Op::Max, b, above_a) || any(Op::Min, a, below_b) || all(Op::Min, b, above_a) ||
         all(Op::Max, a, below_b);
}

}  // namespace

bool prove_nonnegative(NodeRef a) { return at_most(index_const(0), a, 0); }
bool prove_less(NodeRef a, NodeRef b) { return at_most(a, b, -1); }
bool prove_less_equal(NodeRef a, NodeRef b) { return at_most(a, b, 0); }

bool prove_equal(NodeRef a, NodeRef b) {
  if (a == b) return true;
  NodeRef rest = difference(a, b);
  if (is_static(rest)) return static_value(rest) == 0;
  return simplify(a) == simplify(b) || is_zero(expand(rest));
}

bool prove_true(NodeRef condition) {
  NodeRef simple = simplify(condition);
  return simple->is_const() && simple->arg.bits != 0;
}

}  // namespace anneal
