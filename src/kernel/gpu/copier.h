// Writes the instructions of a program anew, with some more or fewer of them: what passes that
// insert, drop or replace have in common. Must not decide what.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/program/program.h"

namespace anneal {

class Copier {
 public:
  // Takes the code of the program, which gets the new one from finish().
  explicit Copier(Program& program)
      : program_(program), old_(std::move(program.code)), names_(old_.size(), kNoValue) {
    program_.code.clear();
  }

  size_t size() const { return old_.size(); }
  const Instruction& old(size_t at) const { return old_[at]; }

  // An instruction of the old code, its operands as they are called now.
  void copy(size_t at) {
    Instruction instruction = old_[at];
    for (ValueId& operand : instruction.operands) operand = now(operand);
    names_[at] = add(instruction);
  }
  // A new one, of values by their new names.
  ValueId add(const Instruction& instruction) {
    code_.push_back(instruction);
    return static_cast<ValueId>(code_.size() - 1);
  }
  Instruction& last() { return code_.back(); }
  // Whoever reads the old instruction reads this now.
  void replace(size_t at, ValueId by) { names_[at] = by; }
  ValueId now(ValueId old) const {
    return old == kNoValue ? kNoValue : names_[static_cast<size_t>(old)];
  }

  void finish() { program_.code = std::move(code_); }

 private:
  Program& program_;
  std::vector<Instruction> old_, code_;
  std::vector<ValueId> names_;  // by old instruction
};

}  // namespace anneal
