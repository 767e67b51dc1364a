// A line on the terminal while something compiles for long, or a part of the line that says what is
// being done (busy.h). Gone when it is done.
#pragma once

namespace anneal::cli {

// Only where standard error is a terminal, and not before two seconds have gone by.
class CompileProgressLine {
 public:
  CompileProgressLine();
  ~CompileProgressLine();
  CompileProgressLine(const CompileProgressLine&) = delete;
  CompileProgressLine& operator=(const CompileProgressLine&) = delete;
};

}  // namespace anneal::cli
