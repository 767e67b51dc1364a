// What things cost, roughly, in nanoseconds on one fast core: enough to choose between computing
// again and storing. Sizes that are symbolic count at their largest.
#pragma once

#include "body/kernel_body.h"
#include "ir/node.h"

namespace anneal {

// Elements of a shape, and the size of an axis, as numbers.
double element_estimate(const Shape& shape);
double size_estimate(NodeRef size);

// One element of an elementwise op, vectorised.
double compute_cost(NodeRef node);
// Moving one element of a dtype to or from memory.
double memory_cost(DType dtype);

}  // namespace anneal
