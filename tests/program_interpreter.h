// What a Program does, one instruction and one lane at a time, by the ops' own meaning. Slow and
// strict: touching memory outside a buffer is an error, and a local element that was never written
// reads as NaN. Where lanes are threads, two that touch the same element between two barriers, one
// of them storing, are an error, too.
#pragma once

#include <span>

#include "ir/interpreter.h"
#include "kernel/program/program.h"

namespace anneal {

// Runs the cells from 0 below `cells`; `backwards` takes them the other way round, for no cell may
// depend on another.
void run_program(const Program& program, std::span<Value* const> buffers,
                 std::span<const int64_t> sizes, int64_t cells, bool backwards = false);

}  // namespace anneal
