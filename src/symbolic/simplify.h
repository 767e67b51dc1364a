// Simplifies index expressions and the conditions over them: sums, division, comparison. Every rule
// keeps the value for all variables within their bounds and the limits in scope (limits.h), makes
// no expression longer, and leaves alone what could overflow; so simplify(simplify(e)) ==
// simplify(e).
#pragma once

#include <span>
#include <vector>

#include "rewrite/rule_set.h"

namespace anneal {

NodeRef simplify(NodeRef expression);
std::vector<NodeRef> simplify(std::span<const NodeRef> expressions);

// The rules, for passes that simplify index expressions along with everything else. They do nothing
// to nodes that are neither of dtype index nor a condition over such.
const RuleSet& index_sum_rules();           // "index-sums"
const RuleSet& index_division_rules();      // "index-division"
const RuleSet& index_comparison_rules();    // "index-comparison"
const RuleSet& index_condition_rules();     // "index-conditions"
std::vector<const RuleSet*> index_rules();  // all of them, in the order to apply them

}  // namespace anneal
