// Values that are much larger than what they are made of, as the scores of attention are, get no
// memory of their own: whoever reduces them computes them again, a tile of rows at a time in fast
// memory. Works on fragments before they are grouped, by their shapes and not by what they mean.
#pragma once

#include "schedule/fuse/dataflow.h"

namespace anneal {

// Fragments that became part of others are left empty. `flow` follows.
void fuse_tiles(Rangified& program, Dataflow& flow, std::span<const AssignedBuffer> in_place,
                const ScheduleOptions& options);

}  // namespace anneal
