// Machine code of a CPU as text to look at.
#pragma once

#include "codegen/target_kernels.h"

namespace anneal {

extern const SourceForm kLlvmForms[2];  // "llvm", "asm"

}  // namespace anneal
