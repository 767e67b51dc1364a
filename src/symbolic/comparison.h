// Comparisons as "a sum is below zero" or "is zero", and the one node each of them has.
// Not for other folders.
#pragma once

#include <optional>

#include "ir/index.h"

namespace anneal::rules {

struct Comparison {
  Op op = Op::Lt;   // Lt: form < 0, Eq: form == 0
  LinearForm form;  // without common factors
};

// a < b, a <= b and a == b over index expressions; nothing for other nodes.
std::optional<Comparison> comparison_of(NodeRef node);
// Terms on the side where they are positive; a <= b only where a < b would need a constant.
NodeRef node_of(const Comparison& comparison);
// What the bounds and limits say.
std::optional<bool> decide(const Comparison& comparison);

// The opposite of a condition, if that is not longer than the condition and a not.
NodeRef opposite(NodeRef condition);

}  // namespace anneal::rules
