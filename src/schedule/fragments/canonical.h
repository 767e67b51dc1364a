// Gives a kernel's buffers and axes their final numbers, by where they are first met: kernels that
// do the same become the same nodes.
#pragma once

#include "schedule/fuse/rangeify.h"

namespace anneal {

// `memory` says where each buffer of the schedule really is: itself, or the target of an
// assignment.
KernelPart canonical_part(const Fragment& fragment, std::span<const NodeRef> stores,
                          std::span<const ScheduleBuffer> buffers, std::span<const int> memory);

}  // namespace anneal
