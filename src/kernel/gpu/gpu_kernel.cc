#include "kernel/gpu/gpu_kernel.h"

#include <algorithm>
#include <optional>

#include <anneal/error.h>

#include "kernel/gpu/passes.h"
#include "kernel/gpu/place_locals.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Lowered so that its tiles fit the memory of a workgroup, if they can: the less is kept there, the
// smaller they are. `options` becomes what that took.
std::optional<LoweredBody> lower_within(const KernelBody& body, LowerOptions& options) {
  Capabilities& capabilities = options.capabilities;
  std::vector<std::string>& disabled = options.disabled;
  while (true) {
    LoweredBody lowered = lower(body, options);
    if (fits_workgroup(lowered.program, capabilities)) return lowered;
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

// The planner's own, with what it took.
LoweredBody lower_own(const KernelBody& body, LowerOptions& options) {
  options.plan.clear();
  std::optional<LoweredBody> lowered = lower_within(body, options);
  if (!lowered) throw InternalError("a kernel does not fit the memory of a workgroup");
  return *std::move(lowered);
}

}  // namespace

bool fits_workgroup(const Program& program, const Capabilities& capabilities) {
  Program placed = program;
  lanes_to_threads(placed);
  if (!is_disabled("place-locals", {})) place_locals(placed);
  const LocalBytes bytes = gpu_local_bytes(placed, capabilities.matrix_element_bytes == 2);
  return bytes.of_group <= capabilities.workgroup_bytes &&
         bytes.of_thread <= capabilities.private_bytes;
}

LowerOptions fitting_options(const KernelBody& body, const LowerOptions& options) {
  LowerOptions fitting = options;
  lower_own(body, fitting);
  fitting.plan = options.plan;
  return fitting;
}

GpuKernel make_gpu_kernel(const KernelBody& body, const LowerOptions& options) {
  LowerOptions fitting = options;
  LoweredBody lowered = lower_own(body, fitting);
  if (!options.plan.empty()) {
    fitting.plan = options.plan;
    LoweredBody given = lower(body, fitting);
    if (given.refused.empty() && !fits_workgroup(given.program, options.capabilities))
      given.refused = "it does not fit the memory of a workgroup";
    if (given.refused.empty())
      lowered = std::move(given);
    else
      lowered.refused = std::move(given.refused);
  }
  return {std::move(lowered.program), lowered.cells, most_elements(body), std::move(lowered.plan),
          std::move(lowered.refused)};
}

int64_t most_elements(const KernelBody& body) {
  int64_t most = 0;
  for (NodeRef buffer : body.buffers) most = std::max(most, bounds(buffer->dim(0)).max);
  return most;
}

bool fits_group(const KernelBody& body, const Capabilities& capabilities) {
  LowerOptions options{.capabilities = capabilities};
  return lower_within(body, options).has_value();
}

}  // namespace anneal
