// What has to be stored so that no kernel works on more buffers than the device can bind.
#pragma once

#include <span>
#include <vector>

#include "ir/node_map.h"
#include "schedule/fuse/rangeify.h"

namespace anneal {

// A value to store, and why: the buffers of the fragment that has too many without it, or its
// length (divide.h).
struct OverLimit {
  NodeRef value = nullptr;
  UnfusedReason reason = UnfusedReason::Limit;
  BufferLimit limit = {};
};

// One of each fragment that has too many buffers; none where all are within the limit. `memory`:
// where each buffer really is. A UserError where nothing helps.
std::vector<OverLimit> values_over_limit(const Rangified& program, std::span<const int> memory,
                                         int most_buffers);

// The same roots, in which these values are stored. `reasons` has what was stored before for a
// limit, as nodes of these roots, and becomes that of the results.
std::vector<NodeRef> with_stored(std::span<const NodeRef> roots, std::span<const OverLimit> values,
                                 NodeMap<OverLimit>& reasons);

}  // namespace anneal
