// A Program as a WGSL compute shader: a cell is a group of threads, and lanes are threads. The text
// is a function of the program alone; names come from counters.
#pragma once

#include <string>
#include <vector>

#include "kernel/program/program.h"

namespace anneal::wgsl {

// What is known of the memory that buffers are.
struct Memory {
  // By buffer: the one before it that is the same memory, and bound for both; empty: none is.
  std::vector<int> same_as = {};
  // By buffer: whether nothing is stored into the piece of memory it is a part of; empty: no.
  // WebGPU wants a piece bound for reading alone, or all its parts for writing too; what is bound
  // for reading alone need not wait for other readers.
  std::vector<bool> only_read = {};
  friend bool operator==(const Memory&, const Memory&) = default;
};

struct ShaderOptions {
  bool wide_index = false;  // positions may not fit 31 bits
  Memory memory = {};
  int subgroup = 0;  // threads of a subgroup, always so many; 0: none, or they differ
  // The adapter's units multiply matrices; otherwise that is spelled out, f16 in fast memory takes
  // a word then.
  bool matrices = false;
};

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

// Memory of a group, and of each thread, that a program takes.
struct LocalBytes {
  int64_t of_group = 0, of_thread = 0;
};
inline constexpr int64_t kMostThreadBytes = 8192;                       // WGSL allows no more
LocalBytes local_bytes(const Program& program, bool matrices = false);  // see ShaderOptions
Shader write_shader(const Program& program, const ShaderOptions& options = {});

}  // namespace anneal::wgsl
