// What must hold of symbolic sizes for a program to have a meaning, and was not proven when it was
// written: checked once for every binding. The same mistakes the interpreter reports.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "symbolic/index_program.h"

namespace anneal {

class SizeChecks {
 public:
  SizeChecks() = default;
  // Of everything the roots reach, in the current graph.
  SizeChecks(std::span<const NodeRef> roots, std::span<const NodeRef> variables);

  // An error of the user where one does not hold.
  void check(std::span<const int64_t> sizes) const;

 private:
  struct Rule {
    bool equal;        // a == b, else a <= b
    std::string what;  // "reshape: sizes differ"
    std::string hint;
  };
  std::vector<Rule> rules_;
  IndexProgram sides_;  // two of each rule
};

}  // namespace anneal
