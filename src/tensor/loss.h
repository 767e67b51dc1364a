// What losses share: shapes that must agree, and the mean, the sum or neither of one value an
// element.
#pragma once

#include <anneal/functional.h>

namespace anneal {

Tensor reduced(const Tensor& losses, Reduction reduction);

// Broadcasting [n, 1] against [n] would compare everything with everything; numbers may broadcast.
void check_same_shape(const char* what, const Operand& prediction, const Operand& target);

}  // namespace anneal
