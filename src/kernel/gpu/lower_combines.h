// How the threads of a workgroup combine what each of them has: within subgroups by exchange of
// registers where the device can do that, and between them through shared memory.
#pragma once

#include "kernel/program/program.h"

namespace anneal {

// `subgroup`: threads of every subgroup that exchange values; 0: none do. `program.threads` is
// known. A Combine stays one instruction and does not become the twenty and more that it stands
// for: a kernel has several, for each of which a backend calls one function, and where a device has
// an instruction for it (redux.sync of CUDA, subgroupAdd of WGSL) a backend could not find it
// again. What differs between devices is in the instruction: who exchanges, and through which
// memory.
void lower_combines(Program& program, int subgroup);

}  // namespace anneal
