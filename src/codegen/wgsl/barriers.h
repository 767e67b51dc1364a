// Where the threads of a group must wait for each other: between a store that some of them make and
// an access of others to the same memory. Errs on the side of waiting.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/program/program.h"

namespace anneal::wgsl {

struct Barrier {
  bool locals = false, buffers = false;  // what it is for
};

// Whether each thread only touches elements of a local whose number is its own modulo the number of
// lanes: then it can have them to itself.
bool is_private(const Program& program, size_t local);

// What must stand before each instruction. Lanes are threads.
std::vector<Barrier> find_barriers(const Program& program);

}  // namespace anneal::wgsl
