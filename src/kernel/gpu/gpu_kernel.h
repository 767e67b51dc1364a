// A kernel's body as a program for a GPU, within its limits: the one place where that is made, for
// those who run it and for those who look at it. Needs what is known of a GPU, and no GPU.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/gpu/argument_memory.h"
#include "kernel/lower.h"

namespace anneal {

struct GpuKernel {
  Program program;  // as lower() made it
  NodeRef cells = nullptr;
  int64_t most_elements = 0;  // of any buffer
  std::string plan = {};      // where it was asked for: see LoweredBody
  std::string refused = {};   // of the plan that was given: see LoweredBody
};

// What a body is lowered with so that the planner's own plan has room in the memory of a workgroup.
// A plan that is given is one of these. In the current graph, which must be the body's own.
LowerOptions fitting_options(const KernelBody& body, const LowerOptions& options);

// In the current graph, which must be the body's own.
GpuKernel make_gpu_kernel(const KernelBody& body, const LowerOptions& options);

// What every backend prints: after all passes (passes.h), for its arguments in such memory.
Program gpu_program(const GpuKernel& kernel, const Capabilities& capabilities,
                    const ArgumentMemory& memory);

// Of any of its buffers, whatever its sizes are.
int64_t most_elements(const KernelBody& body);

// Whether its tiles find room in the memory of a workgroup; a body without tiles always does.
bool fits_group(const KernelBody& body, const Capabilities& capabilities);

}  // namespace anneal
