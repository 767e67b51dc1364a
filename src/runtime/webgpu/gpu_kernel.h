// A kernel's body as the text that a GPU runs: the one place where that is made, for those who run
// it and for those who look at it.
#pragma once

#include <vector>

#include "codegen/wgsl/wgsl.h"
#include "kernel/lower.h"
#include "runtime/webgpu/gpu.h"

namespace anneal {

struct GpuKernel {
  Program program;
  NodeRef cells = nullptr;
  bool wide = false;  // positions need more than 31 bits
};

// Within the limits of the GPU. In the current graph, which must be the body's own.
GpuKernel make_gpu_kernel(const KernelBody& body, const Capabilities& capabilities,
                          const webgpu::Gpu& gpu);

// `same_as`: see wgsl::ShaderOptions.
wgsl::Shader shader_of(const GpuKernel& kernel, const webgpu::Gpu& gpu,
                       const std::vector<int>& same_as = {});

}  // namespace anneal
