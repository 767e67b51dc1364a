// Barriers: the threads of a workgroup wait for each other between a store that some of them make
// and an access of others to the same memory. Errs on the side of waiting.
#pragma once

#include "kernel/program/program.h"

namespace anneal {

// Barriers that stand already count.
void insert_barriers(Program& program);

}  // namespace anneal
