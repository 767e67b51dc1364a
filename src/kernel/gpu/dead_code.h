// What nothing uses is left out: places of elements that became part of a vector, what loops carry
// for nobody.
#pragma once

#include "kernel/program/program.h"

namespace anneal {

void drop_dead_code(Program& program);

}  // namespace anneal
