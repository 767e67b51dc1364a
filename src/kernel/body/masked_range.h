// Which elements of a row count. Where a mask makes the others -inf before a maximum and an
// exponential, or 0 before a sum, nothing comes of them, and loops over the row can leave them out:
// half of causal attention, most of a sliding window. What they would be multiplied with is then
// not read: were it infinite or NaN, that would not show in rows that are not to see it.
#pragma once

#include "body/kernel_body.h"

namespace anneal {

// The body with `reaches` for the axes of its tiles, where all of them have the same.
KernelBody find_masked_ranges(const KernelBody& body);

}  // namespace anneal
