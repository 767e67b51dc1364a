// What a plan takes, and whether it is one: known from the plan and its body, before anything is
// emitted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/plan/kernel_plan.h"
#include "kernel/program/program.h"

namespace anneal {

// Memory of the cell, in the order in which emission asks for it.
std::vector<LocalBuffer> cell_memory(const KernelPlan& plan, const Analysis& analysis);
int64_t cell_memory_bytes(const KernelPlan& plan, const Analysis& analysis);

// Values that its innermost loop keeps in registers: of vectors, or of a thread.
int registers(const KernelPlan& plan);

// What is wrong with it for any target; empty where nothing is. A plan that passes and is not of
// the planner's may still compute something else: see Planner::why_not().
std::string verify(const KernelPlan& plan, const Analysis& analysis);

}  // namespace anneal
