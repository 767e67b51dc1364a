// Divisions of indices that are never negative by positive constants are marked: every GPU divides
// unsigned numbers in fewer instructions, and by such constants without dividing.
#pragma once

#include "kernel/program/program.h"

namespace anneal {

void mark_unsigned_divisions(Program& program);

}  // namespace anneal
