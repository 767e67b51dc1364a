// anneal explain NAME: what an op means and which rules know it; what a function that is made of
// ops becomes; which rules rewrote a program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/inspect/functions.h"
#include "ir/op.h"
#include "models/program.h"

namespace anneal::cli {

struct ExplainOptions {
  std::string target;                 // of an op, a function or a program
  size_t events = 1;                  // rewrites of each pass over a program to show
  std::vector<std::string> disabled;  // "set" or "set/rule"
  bool json = false;
};

void explain(const ExplainOptions& options);
void explain_op(Op op, const ExplainOptions& options);
void explain_function(const FunctionRow& row, const ExplainOptions& options);
void explain_program(const models::ProgramRow& row, const ExplainOptions& options);

}  // namespace anneal::cli
