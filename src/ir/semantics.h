// The meaning of every elementwise op on scalars, one line an op. The interpreter, the constant
// folder and the tests of every backend ask here and nowhere else.
#pragma once

#include <span>

#include "ir/op.h"
#include "ir/scalar.h"

namespace anneal {

// The result of an elementwise op on scalars of the dtypes the op accepts. `dtype` is the result's.
Scalar evaluate(Op op, DType dtype, std::span<const Scalar> sources);

// First word of threefry2x32 with 20 rounds.
uint32_t threefry(uint32_t counter0, uint32_t counter1, uint32_t key0, uint32_t key1);

}  // namespace anneal
