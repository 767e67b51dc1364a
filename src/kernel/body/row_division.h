// Divisions by what is the same for a whole row become multiplications: a division takes as long as
// ten of them. At most 2 ulp off, and right for every divisor: zeros, infinities and denormals too.
#pragma once

#include <string_view>
#include <vector>

#include "body/kernel_body.h"

namespace anneal {

KernelBody multiply_by_reciprocals(const KernelBody& body);
std::vector<std::string_view> reciprocal_rules();  // their names

}  // namespace anneal
