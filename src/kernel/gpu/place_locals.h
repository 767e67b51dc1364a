// Where local buffers live: in memory that the threads of a workgroup share, or each thread's part
// in memory of its own. And what they take there.
#pragma once

#include <cstdint>

#include "kernel/program/program.h"

namespace anneal {

// Private where threads only touch elements of their own and not everything has room in shared
// memory, which is nearer. `program.threads` is known.
void place_locals(Program& program);

struct LocalBytes {
  int64_t of_group = 0, of_thread = 0;
};
// Elements take a word at least, but f16 that matrix units read takes two bytes. Of what
// gpu_program() made.
LocalBytes gpu_local_bytes(const Program& program);

}  // namespace anneal
