// What a plan takes of the memory of a workgroup and of its threads: known from the plan and its
// body, so that nothing is emitted to learn whether it fits.
#pragma once

#include <cstdint>

#include "kernel/plan/kernel_plan.h"
#include "target/capabilities.h"

namespace anneal {

struct WorkgroupMemory {
  int64_t of_group = 0, of_thread = 0;  // bytes
  friend bool operator==(const WorkgroupMemory&, const WorkgroupMemory&) = default;
};

// As place_locals(), lower_combines() and gpu_local_bytes() find it in the program that is emitted.
// `units`: matrix units read f16 as they are. `own_memory`: threads may have memory of their own.
// `subgroup`: threads of every subgroup that exchange values; 0: none do.
WorkgroupMemory workgroup_memory(const KernelPlan& plan, Analysis& analysis, bool units,
                                 bool own_memory, int subgroup);

// Whether a workgroup of the device has so much.
bool fits_workgroup(const KernelPlan& plan, Analysis& analysis, const Capabilities& capabilities,
                    bool own_memory);

// Threads exchange words: narrower values are held in some, and bools are none.
inline bool can_exchange(DType dtype) { return !is_bool(dtype) && byte_size(dtype) <= 4; }
// So many threads combine values in registers before they do it in shared memory. A kernel combines
// all in one way: where one value waits for memory there is no need of subgroups.
inline int threads_in_registers(int threads, int subgroup, bool all_exchange) {
  return subgroup > 1 && threads % subgroup == 0 && all_exchange ? subgroup : 1;
}

}  // namespace anneal
