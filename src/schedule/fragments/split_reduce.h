// Reductions to few elements over many: one phase makes a partial result for each of a number of
// equal pieces, a second one puts them together. The pieces follow from the sizes alone, so that
// results do not depend on how many threads there are.
#pragma once

#include "schedule/fuse/rangeify.h"

namespace anneal {

// `memory`: where each buffer of the program is; what is assigned in place is in its target.
void split_reductions(Rangified& program, std::span<const int> memory,
                      const ScheduleOptions& options);

}  // namespace anneal
