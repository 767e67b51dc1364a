// Products of f32 for devices with units that multiply matrices of f16: each operand becomes the
// sum of two f16 halves, of which three of the four products are added. Must keep about 22 bits of
// each operand that is not far smaller than the largest of its tensor.
#pragma once

#include "schedule/fuse/dataflow.h"

namespace anneal {

// Sums that are large enough. The largest number of each operand is found before, by fragments of
// their own, and brings it into the range of f16.
void split_products(Rangified& program, Dataflow& flow, const ScheduleOptions& options);

}  // namespace anneal
