// Chained reductions in one pass. A tile that holds whole rows becomes one that holds a block of
// them: reductions over the rows go from block to block and carry what they have so far. Where a
// sum has a factor exp(x - max of x), as in softmax, the maximum so far stands for the one not yet
// known, and the sum so far is scaled whenever a larger one is found. What must know a result
// first takes another pass, for which the tiles are computed again.
#pragma once

#include "body/kernel_body.h"
#include "target/capabilities.h"

namespace anneal {

// A body comes back as it is where its tiles are small, or where computing them again costs more
// than keeping them.
KernelBody online_reductions(const KernelBody& body, const Capabilities& capabilities);

}  // namespace anneal
