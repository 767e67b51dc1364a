// anneal explain OP|PROGRAM: what an op means and which rules know it; which rules rewrote a
// program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace anneal::cli {

struct ExplainOptions {
  std::string target;                 // an op's text or a program's name
  size_t events = 5;                  // rewrites of a program to show
  std::vector<std::string> disabled;  // "set" or "set/rule"
  bool json = false;
};

void explain(const ExplainOptions& options);

}  // namespace anneal::cli
