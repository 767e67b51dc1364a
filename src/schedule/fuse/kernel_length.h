// What has to be stored so that no kernel is longer than code generators make in reasonable time.
// A chain is cut at equal distances, so that its kernels are mostly one and the same, compiled
// once.
#pragma once

#include "schedule/fuse/binding_limit.h"

namespace anneal {

// Of each fragment of at least so many nodes that is too long, values that go across where it is
// cut: as few bytes as there are. None where all are short, or nothing would help.
std::vector<OverLimit> values_over_length(const Rangified& program,
                                          const Capabilities& capabilities, size_t least_nodes = 0);

}  // namespace anneal
