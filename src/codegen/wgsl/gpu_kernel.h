// A kernel's body as the text that a GPU runs: the one place where that is made, for those who run
// it and for those who look at it. Needs what is known of a GPU, and no GPU.
#pragma once

#include <span>
#include <string>

#include "codegen/wgsl/wgsl.h"
#include "kernel/lower.h"
#include "schedule/schedule.h"

namespace anneal {

struct GpuKernel {
  Program program;
  NodeRef cells = nullptr;
  bool wide = false;      // positions need more than 31 bits
  std::string plan = {};  // where it was asked for: see LoweredBody
};

// Within the limits of the GPU. In the current graph, which must be the body's own.
GpuKernel make_gpu_kernel(const KernelBody& body, const LowerOptions& options);

// Whether its tiles find room in the memory of a workgroup; a body without tiles always does.
bool fits_group(const KernelBody& body, const Capabilities& capabilities);

// Where an argument of a kernel is: in a piece of memory (null: it has no elements) from an offset.
struct ArgumentPlace {
  const void* piece;
  int64_t offset;
};
wgsl::Memory memory_of(const Program& program, std::span<const ArgumentPlace> arguments);
// Before places are known: temporaries are parts of one piece, all else is a piece of its own.
wgsl::Memory expected_memory(const Program& program, const Schedule& schedule,
                             std::span<const int> arguments);

wgsl::Shader shader_of(const GpuKernel& kernel, const Capabilities& capabilities,
                       const wgsl::Memory& memory);

}  // namespace anneal
