// A kernel for a GPU as WGSL: for those who run it and for those who look at it.
#pragma once

#include "codegen/wgsl/wgsl.h"
#include "kernel/gpu/gpu_kernel.h"

namespace anneal {

wgsl::Shader shader_of(const GpuKernel& kernel, const Capabilities& capabilities,
                       const ArgumentMemory& memory);

}  // namespace anneal
