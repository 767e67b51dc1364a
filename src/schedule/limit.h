// What has to be stored so that no kernel works on more buffers than the device can bind.
#pragma once

#include <span>
#include <vector>

#include "schedule/rangeify.h"

namespace anneal {

// Values to store, one of each fragment that has too many buffers; none where all are within the
// limit. `memory`: where each buffer really is. A UserError where nothing helps.
std::vector<NodeRef> values_over_limit(const Rangified& program, std::span<const int> memory,
                                       int most_buffers);

// The same roots, in which these values are stored.
std::vector<NodeRef> with_stored(std::span<const NodeRef> roots, std::span<const NodeRef> values);

}  // namespace anneal
