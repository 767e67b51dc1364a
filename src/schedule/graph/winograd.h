// Winograd's minimal filtering for convolutions of 3x3 without a stride, F(4x4, 3x3): 36 products
// where the definition takes 144. Operands are those of a convolution that was checked; nothing is
// checked here.
#pragma once

#include <cstdint>

#include <anneal/tensor.h>

#include "target/capabilities.h"

namespace anneal {

// Zeros before the first row and the first column of an image.
struct Border {
  int64_t rows, columns;
};

// y[n, o, i, j] = sum of x[n, c, i + a - border, j + b - border] weight[o, c, a, b], of x
// [N, C, H, W] and weight [O, C, 3, 3]. y has H + 2 * border - 2 rows.
Tensor winograd(const Tensor& x, const Tensor& weight, const Border& border);
// The adjoint of the above with respect to x, whose sizes in space are H and W.
Tensor winograd_adjoint(const Tensor& y, const Tensor& weight, const Border& border);
// And with respect to the weight.
Tensor winograd_weights(const Tensor& x, const Tensor& y, const Border& border);

// Whether a convolution of an x of these sizes can go this way and is likely to be faster. A
// symbolic batch counts at its largest.
bool winograd_pays(const Sizes& x, const Sizes& weight, DType dtype, const Border& border,
                   const Capabilities& capabilities);
// The same of its adjoint, by the sizes of y.
bool winograd_adjoint_pays(const Sizes& y, const Sizes& weight, DType dtype, const Border& border,
                           const Capabilities& capabilities);

}  // namespace anneal
