// Sums of a * b in which each of a and b lacks an axis of the result: matrix products,
// convolutions.
#pragma once

#include "ir/node.h"

namespace anneal {

bool is_product(NodeRef node);

}  // namespace anneal
