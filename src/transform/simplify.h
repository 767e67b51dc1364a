// Makes a program smaller without changing a bit of its results: constants are folded, identities
// removed, movement merged, integer index arithmetic simplified (src/symbolic).
#pragma once

#include <span>
#include <vector>

#include "rewrite/rewriter.h"

namespace anneal {

// The rule sets, in the order they are tried.
extern const RuleSet kFoldRules;      // "fold"
extern const RuleSet kIdentityRules;  // "identities"
extern const RuleSet kMovementRules;  // "movement"
extern const RuleSet kOrderRules;     // "order"
extern const RuleSet kStripRules;     // "strip"

// All of them and the index rules: what `anneal explain` lists.
const std::vector<const RuleSet*>& program_rules();

// Afterwards gradients can no longer be taken: marks that only matter to them are gone.
std::vector<NodeRef> simplify_program(std::span<const NodeRef> roots, RewriteLog* log = nullptr,
                                      const DisabledRules& disabled = {});

}  // namespace anneal
