// Within a body whose values live in tiles, lanes are rows: what is loaded with one element a row,
// again and again, is first brought into a tile of its own, where rows are neighbours.
#pragma once

#include "body/kernel_body.h"

namespace anneal {

// A body without tiles comes back as it is.
KernelBody gather_rows(const KernelBody& body);

}  // namespace anneal
