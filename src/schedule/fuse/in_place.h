// Where an assignment may write straight into its target, and copies for those that may not.
#pragma once

#include "schedule/fuse/rangeify.h"

namespace anneal {

// Those of program.assigned whose value is computed in the target's memory. The others get copies
// at the end.
std::vector<AssignedBuffer> assign_in_place(Rangified& program, bool enabled);

// Whether a fragment that stores in the target reads nothing of it but the element it replaces.
bool reads_only_what_it_replaces(const Fragment& fragment, const AssignedBuffer& assigned);

}  // namespace anneal
