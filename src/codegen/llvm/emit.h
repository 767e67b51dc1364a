// One Program as one LLVM function. Only for the files beside it: it needs LLVM.
#pragma once

#include <llvm/IR/Module.h>

#include "codegen/llvm/compile.h"

namespace anneal {

// Adds the function to the module, whose data layout must be set.
void emit_function(llvm::Module& module, const Program& program, const CpuTarget& target);

}  // namespace anneal
