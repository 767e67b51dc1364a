// Products in a graph: sums of a * b in which each factor is the same along an axis that the other
// changes along. What that means is in body/product.h, which bodies are asked with.
#pragma once

#include "ir/node.h"

namespace anneal {

// Of a reduction of tensors. Movement between the sum and what it multiplies is looked through.
bool is_product(NodeRef node);

}  // namespace anneal
