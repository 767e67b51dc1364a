#include "codegen/wgsl/kernel_shader.h"

#include <utility>

#include "kernel/gpu/passes.h"

namespace anneal {

wgsl::Shader shader_of(const GpuKernel& kernel, const Capabilities& capabilities,
                       const ArgumentMemory& memory) {
  const Program program =
      gpu_program(kernel.program, {.most_elements = kernel.most_elements, .memory = memory});
  return wgsl::write_shader(program, {memory, capabilities.fixed_subgroup_threads,
                                      capabilities.matrix_element_bytes == 2});
}

}  // namespace anneal
