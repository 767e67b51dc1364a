// What a sum of products computes for each element of a row, and would compute again for every
// column, is kept in a tile: exponentials, before they meet the columns of another matrix.
#pragma once

#include "body/kernel_body.h"

namespace anneal {

// Of a body with tiles; another comes back as it is.
KernelBody hoist_prologues(const KernelBody& body);

}  // namespace anneal
