// What the rule files of this folder share. Not for other folders.
#pragma once

#include "ir/build.h"
#include "rewrite/rule_set.h"
#include "symbolic/bounds.h"
#include "symbolic/limits.h"
#include "symbolic/polynomial.h"

namespace anneal::rules {

// Rules give up on longer expressions: taking sums apart again at every level would be quadratic.
inline constexpr uint64_t kLongest = 1024;

// Where the rules may work: an index expression or condition that cannot overflow.
inline bool is_safe(NodeRef node) { return cannot_overflow(node) && tree_size(node) <= kLongest; }
inline bool is_safe_index(NodeRef node) { return is_index(node) && is_safe(node); }
inline bool is_safe_condition(NodeRef node) { return is_condition(node) && is_safe(node); }
inline bool is_safe_comparison(NodeRef node) { return is_index(node->source(0)) && is_safe(node); }

// The replacement, if it is no longer than what it replaces and cannot overflow either.
inline NodeRef no_longer(NodeRef before, NodeRef after) {
  bool fits = after && after != before && tree_size(after) <= tree_size(before);
  return fits && cannot_overflow(after) ? after : unchanged;
}
inline NodeRef shorter(NodeRef before, NodeRef after) {
  return after && tree_size(after) < tree_size(before) ? no_longer(before, after) : unchanged;
}

inline NodeRef bool_const(bool value) { return make_const(Scalar::of_int(DType::Bool, value)); }
inline NodeRef negation(NodeRef condition) { return make(Op::Xor, {condition, bool_const(true)}); }
inline bool is_true(NodeRef node) { return node->is_const() && node->arg.bits == 1; }
inline bool is_false(NodeRef node) { return node->is_const() && node->arg.bits == 0; }

inline bool is_positive(NodeRef divisor) { return bounds(divisor).min >= 0; }  // it is never zero

// The leaves of nested nodes of one op, in order.
std::vector<NodeRef> flatten(Op op, NodeRef node);
// They and the op, nested to the left and ordered by key, each once.
NodeRef join(Op op, std::vector<NodeRef> parts);

}  // namespace anneal::rules
