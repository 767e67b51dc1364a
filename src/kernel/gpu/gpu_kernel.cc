#include "kernel/gpu/gpu_kernel.h"

#include <algorithm>
#include <optional>

#include <anneal/error.h>

#include "kernel/gpu/lower_combines.h"
#include "kernel/gpu/passes.h"
#include "kernel/gpu/place_locals.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Whether local buffers have room where gpu_program() will place them.
bool fits(Program program, const Capabilities& capabilities) {
  lanes_to_threads(program);
  if (!is_disabled("place-locals", {})) place_locals(program);
  lower_combines(program, capabilities.fixed_subgroup_threads);
  const LocalBytes bytes = gpu_local_bytes(program, capabilities.matrix_element_bytes == 2);
  return bytes.of_group <= capabilities.workgroup_bytes &&
         bytes.of_thread <= capabilities.private_bytes;
}

// Lowered so that its tiles fit the memory of a workgroup, if they can: the less is kept there, the
// smaller they are.
std::optional<LoweredBody> lower_within(const KernelBody& body, LowerOptions options) {
  Capabilities& capabilities = options.capabilities;
  std::vector<std::string>& disabled = options.disabled;
  while (true) {
    LoweredBody lowered = lower(body, options);
    if (fits(lowered.program, capabilities)) return lowered;
    if (capabilities.fast_memory_bytes > 1024) {
      capabilities.fast_memory_bytes /= 2;
      capabilities.nearest_memory_bytes /= 2;
      capabilities.tile_memory_bytes /= 2;
    } else if (disabled.empty()) {
      disabled = {"stage", "online-reduction"};
    } else if (disabled.size() == 2) {
      disabled.emplace_back("unroll");
    } else {
      return std::nullopt;
    }
  }
}

}  // namespace

GpuKernel make_gpu_kernel(const KernelBody& body, const LowerOptions& options) {
  std::optional<LoweredBody> lowered = lower_within(body, options);
  if (!lowered) throw InternalError("a kernel does not fit the memory of a workgroup");
  return {std::move(lowered->program), lowered->cells, most_elements(body),
          std::move(lowered->plan)};
}

Program gpu_program(const GpuKernel& kernel, const Capabilities& capabilities,
                    const ArgumentMemory& memory) {
  return gpu_program(kernel.program, {.most_elements = kernel.most_elements,
                                      .memory = memory,
                                      .subgroup = capabilities.fixed_subgroup_threads,
                                      .matrix_units = capabilities.matrix_element_bytes == 2});
}

int64_t most_elements(const KernelBody& body) {
  int64_t most = 0;
  for (NodeRef buffer : body.buffers) most = std::max(most, bounds(buffer->dim(0)).max);
  return most;
}

bool fits_group(const KernelBody& body, const Capabilities& capabilities) {
  return lower_within(body, {.capabilities = capabilities}).has_value();
}

}  // namespace anneal
