// What is expensive and needed again for the same row, in a later loop over it, is kept in fast
// memory: softmax's exponentials for their sum and for the quotients.
#pragma once

#include "body/kernel_body.h"
#include "target/capabilities.h"

namespace anneal {

// A body that keeps nothing comes back as it is; otherwise it has tiles, one row at a time.
KernelBody cache_rows(const KernelBody& body, const Capabilities& capabilities);

}  // namespace anneal
