// Which accesses of a thread are to four neighbours, so that one access can be made of them: a
// vector of four words, or in memory the two words or the one that hold four narrow elements.
#pragma once

#include <array>
#include <vector>

#include "kernel/program/program.h"

namespace anneal::wgsl {

// Loads or stores of one block of straight code at places that follow each other, the first of
// which is a multiple of four.
struct VectorAccess {
  std::array<size_t, 4> members{};  // instructions, by place
  size_t first = 0, last = 0;       // of the members, in the order of the code
  // The place is the sum of these: a value, the thread's number times a step, and the offset.
  ValueId base = kNoValue, step = kNoValue;
  int64_t offset = 0;
};

class VectorAccesses {
 public:
  explicit VectorAccesses(const Program& program);

  // Null where an access is by itself.
  const VectorAccess* of(size_t instruction) const {
    return group_of_[instruction] < 0 ? nullptr
                                      : &groups_[static_cast<size_t>(group_of_[instruction])];
  }
  // Whether memory is best taken as such: some accesses are, and no store is to a part of one, so
  // that no two threads ever store to a word.
  bool is_vectors(uint64_t buffer) const { return vectors_[buffer]; }

 private:
  struct Place {
    ValueId base = kNoValue, step = kNoValue;
    int64_t offset = 0;
  };
  Place place_of(const Instruction& access) const;
  void find_in(size_t begin, size_t end);
  bool can_meet(const VectorAccess& group) const;
  void choose_buffers();

  const Instruction& at(ValueId value) const { return program_.code[static_cast<size_t>(value)]; }

  const Program& program_;
  std::vector<VectorAccess> groups_;
  std::vector<int> group_of_;
  std::vector<bool> vectors_;
};

}  // namespace anneal::wgsl
