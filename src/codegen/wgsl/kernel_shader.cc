#include "codegen/wgsl/kernel_shader.h"

namespace anneal {

wgsl::Shader shader_of(const GpuKernel& kernel, const Capabilities& capabilities,
                       const ArgumentMemory& memory) {
  return wgsl::write_shader(gpu_program(kernel, capabilities, memory), memory);
}

}  // namespace anneal
