// Bodies over better axes: what they compute stays the same, index arithmetic gets simpler and
// loops fewer. Each function is one idea and can be left out.
#pragma once

#include "body/kernel_body.h"

namespace anneal {

// Stores over no elements disappear, reductions over none become their units, axes of one element
// become 0.
KernelBody drop_trivial_axes(const KernelBody& body);
// Positions and conditions simplified within the sizes of the axes.
KernelBody simplify_positions(const KernelBody& body);
// An axis that is divided by a constant becomes two, so that the division disappears: i // 4 and
// i % 4 are i1 and i2 where i is i1 * 4 + i2.
KernelBody split_axes(const KernelBody& body);
// Two axes that only ever appear as a * size(b) + b become one.
KernelBody merge_axes(const KernelBody& body);
// Reductions over axes of equal size use the same ones, as far as neither is inside the other, so
// that they can share a loop and what it computes.
KernelBody share_axes(const KernelBody& body);

}  // namespace anneal
