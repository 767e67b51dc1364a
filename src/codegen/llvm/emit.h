// One Program as one LLVM function. Only for the files beside it: it needs LLVM.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/llvm/compile.h"

namespace anneal {

// Adds the function to the module, which is for the target that the machine was made for.
void emit_function(llvm::Module& module, const Program& program, const CpuTarget& target,
                   const llvm::TargetMachine& machine);

}  // namespace anneal
