// Tells whoever asked with on_compile_progress(); costs nothing where nobody did.
#pragma once

#include <anneal/progress.h>

namespace anneal {

void report_progress(const CompileProgress& progress);

// A program compiles while it lives.
class CompileScope {
 public:
  CompileScope() { report_progress({"schedule"}); }
  ~CompileScope() { report_progress({"done"}); }
  CompileScope(const CompileScope&) = delete;
  CompileScope& operator=(const CompileScope&) = delete;
};

}  // namespace anneal
