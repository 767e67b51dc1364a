// Puts values into one kernel that are computed over the same rows: a statistic and what uses it,
// several results of one pass over the data. Does not decide what is stored, but drops memory that
// nothing needs any more.
#pragma once

#include "schedule/fuse/dataflow.h"

namespace anneal {

// Fragments that became part of others are left empty. `flow` follows.
void fuse_rows(Rangified& program, Dataflow& flow, std::span<const AssignedBuffer> in_place,
               const ScheduleOptions& options);

}  // namespace anneal
