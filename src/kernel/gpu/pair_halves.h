// f32 rounded to f16 two at a time, where two casts follow each other: devices have an instruction
// for that, and units for matrices take what it makes.
#pragma once

#include "kernel/program/program.h"

namespace anneal {

// In programs for a matrix unit, which are as exact as the device is anyway: elsewhere f16 is
// rounded as the program says, whatever the instruction does.
void pair_halves(Program& program);

}  // namespace anneal
