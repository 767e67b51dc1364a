// How a convolution is computed, chosen by the target's costs: Winograd's minimal filtering, or the
// definition. The results are close, not equal bit for bit, so this is no simplification. Marks of
// gradients tell what is a convolution: it comes before simplify_program, which strips them.
#pragma once

#include <span>
#include <vector>

#include "rewrite/rewriter.h"
#include "target/capabilities.h"

namespace anneal {

extern const RuleSet kConvRules;  // "winograd"; its facts are Capabilities

// Whether a node is the mark of a convolution that can be computed in another way, so that whatever
// comes before the choice keeps it.
bool marks_convolution(NodeRef node);

// Whether a node is the mark of a convolution that can be computed in another way, so that whatever
// comes before the choice keeps it.
bool marks_convolution(NodeRef node);

std::vector<NodeRef> choose_convolutions(std::span<const NodeRef> roots,
                                         const Capabilities& capabilities,
                                         RewriteLog* log = nullptr,
                                         const DisabledRules& disabled = {});

}  // namespace anneal
