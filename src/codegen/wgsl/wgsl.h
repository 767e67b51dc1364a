// A Program as a WGSL compute shader: a cell is a group of threads, and lanes are threads. The text
// is a function of the program and of which arguments share memory; names come from counters.
#pragma once

#include <string>
#include <vector>

#include "kernel/gpu/argument_memory.h"
#include "kernel/program/program.h"

namespace anneal::wgsl {

// Buffers are bindings of group 0 by number; those that are the same as another, or are never
// touched, have none. Behind them comes the uniform: (cells, 0, 0, 0) and then the sizes as 64-bit
// words, two a row.
struct Shader {
  std::string text;
  int threads = 1;              // of a group
  std::vector<int> buffers;     // that have a binding, in order
  std::vector<bool> only_read;  // of each of these
};

// Groups along x; beyond that they are counted in rows of so many.
inline constexpr int64_t kGroupsInRow = 32768;

// Of what gpu_program() made (kernel/gpu/passes.h).
Shader write_shader(const Program& program, const ArgumentMemory& memory = {});

}  // namespace anneal::wgsl
