// Compiled programs by their structure, the last used ones, and what is an input where a structure
// comes with other numbers. Must not compile, and is for one thread at a time.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/program/compiled_program.h"

namespace anneal {

class ProgramCache {
 public:
  explicit ProgramCache(size_t most) : most_(most) {}

  // Numbers that are part of the code make it better, and make it code of one program.
  enum class Numbers : uint8_t { InCode, Anywhere };
  // Null where there is none.
  std::shared_ptr<CompiledProgram> find(const CanonicalProgram& program, Numbers numbers);
  // How to compile a program that was not found. Where the same structure is known with other
  // numbers, those that differ become inputs: the next numbers then find it.
  NumberInputs inputs_for(const CanonicalProgram& program) const;
  // Answers how many were forgotten.
  size_t add(const CanonicalProgram& program, std::shared_ptr<CompiledProgram> compiled);

  size_t size() const { return programs_.size(); }

 private:
  struct Entry {
    Key key;
    std::vector<uint32_t> words;
    std::shared_ptr<CompiledProgram> program;
  };
  using Position = std::list<Entry>::iterator;

  std::vector<Position> of_structure(const CanonicalProgram& program) const;
  void remove(Position entry);

  size_t most_;
  std::list<Entry> programs_;  // the last used first
  std::unordered_multimap<uint64_t, Position> by_key_;
};

}  // namespace anneal
