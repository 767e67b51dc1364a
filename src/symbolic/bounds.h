// What intervals say about index expressions, and how long they are written out. The current graph
// remembers it for its own nodes, so that asking again costs a lookup. Knows nothing of limits
// between variables (limits.h) and rewrites nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "ir/index.h"

namespace anneal {

// Both ends included. An end that does not fit is the end of int64, which then means "unknown".
struct Interval {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();

  bool is_point() const { return min == max; }
  int64_t point() const { return min; }  // the only value, where there is one
  bool is_finite() const {
    return min != std::numeric_limits<int64_t>::min() && max != std::numeric_limits<int64_t>::max();
  }
  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval operator+(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
Interval operator&(Interval a, Interval b);  // what is in both, which must not be empty
Interval operator|(Interval a, Interval b);  // the least interval around both
// Division by zero does not happen, so a divisor's interval leaves zero out where it can.
Interval floor_div(Interval a, Interval b);
Interval floor_mod(Interval a, Interval b);

// All values an expression of dtype index can have; 0 and 1 for a bool. Never empty.
Interval bounds(NodeRef expression);
Interval bounds(const LinearForm& form);  // of the sum, term by term

// No part of the expression can leave int64. Rules touch nothing else.
bool cannot_overflow(NodeRef expression);

// How many operators and leaves the expression has when nothing is shared.
uint64_t tree_size(NodeRef expression);

// Of how many expressions the current graph remembers this. For tests.
size_t remembered_facts();

// Index expressions, and conditions: the scalar bools that stand over them.
inline bool is_index(NodeRef node) { return node->dtype == DType::Index; }
bool is_condition(NodeRef node);

}  // namespace anneal
