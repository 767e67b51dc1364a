// From a canonical program to kernels: simplified and scheduled. The same for a device that is to
// run it and for whoever only looks at it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/program/canonical_program.h"
#include "schedule/memory/memory_plan.h"
#include "schedule/schedule.h"

namespace anneal {

struct ScheduledProgram {
  std::vector<NodeRef> values, assigns;  // simplified, in the graph they were built in
  Schedule schedule;
  std::vector<int> buffers;      // by value: of the schedule; -1: the value is a slot as it is
  std::vector<NodeRef> watched;  // what became of these when the program was simplified
};

// In the current graph, which must be that of `built`. `watched`: nodes of the program that are not
// wanted for themselves.
ScheduledProgram schedule_built(const CanonicalProgram::Built& built,
                                const Capabilities& capabilities,
                                std::span<const NodeRef> watched = {});

// For the kernels of a schedule; `variables`: the symbolic sizes.
std::unique_ptr<MemoryPlanner> plan_memory_of(const Schedule& schedule,
                                              std::span<const NodeRef> variables);

}  // namespace anneal
