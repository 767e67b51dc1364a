// What threads of a workgroup touch in memory, as far as instructions tell.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/program/program.h"

namespace anneal {

class ThreadAccesses {
 public:
  explicit ThreadAccesses(const Program& program) : program_(program) {}

  struct Touched {
    uint64_t buffer;
    bool stored;
  };
  // Operands of matrices may be read as late as they are multiplied.
  std::vector<Touched> of(const Instruction& instruction) const;

  // Whether a thread only touches elements of its own: every so many, in stretches of neighbours.
  bool has_own_elements(uint64_t buffer, int64_t neighbours) const;
  // Whether the buffer is only loaded where it is stored, by the thread that stores there.
  bool is_in_place(uint64_t buffer) const;

 private:
  const Instruction& at(ValueId value) const { return program_.code[static_cast<size_t>(value)]; }
  bool is_multiple(ValueId value, int64_t of) const;
  bool is_own_place(const Instruction& access, int64_t neighbours) const;

  const Program& program_;
};

}  // namespace anneal
