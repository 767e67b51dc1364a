// Which arguments of a kernel are the same memory, and which memory nothing is stored into: known
// when a kernel is bound, and expected before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/program/program.h"
#include "schedule/schedule.h"

namespace anneal {

struct ArgumentMemory {
  // By buffer: the one before it that is the same memory, and bound for both; empty: none is.
  std::vector<int> same_as = {};
  // By buffer: whether nothing is stored into the piece of memory it is a part of; empty: no.
  // WebGPU wants a piece bound for reading alone, or all its parts for writing too; what is bound
  // for reading alone need not wait for other readers.
  std::vector<bool> only_read = {};
  friend bool operator==(const ArgumentMemory&, const ArgumentMemory&) = default;
};

// Where an argument of a kernel is: in a piece of memory (null: it has no elements) from an offset.
struct ArgumentPlace {
  const void* piece;
  int64_t offset;
};
ArgumentMemory memory_of(const Program& program, std::span<const ArgumentPlace> arguments);
// Before places are known: temporaries are parts of one piece, all else is a piece of its own.
ArgumentMemory expected_memory(const Program& program, const Schedule& schedule,
                               std::span<const int> arguments);

}  // namespace anneal
