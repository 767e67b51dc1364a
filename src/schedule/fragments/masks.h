// Masks that outlive memory. Softmax of masked scores is 0 where the mask was, but whoever reads it
// from memory cannot see that. Products then say of it what is known, where(k <= i, p[i, k], 0), so
// that their sums can leave out what only adds 0; and a product whose readers multiply such a 0
// with parts of it, or choose not to see them, stores 0 there instead of computing it. As in
// kernel/body/masked_range.h, what a 0 of a mask would be multiplied with is not looked at: were it
// infinite or NaN, that would not show.
#pragma once

#include "schedule/fuse/rangeify.h"

namespace anneal {

void keep_masks(Rangified& program);

}  // namespace anneal
