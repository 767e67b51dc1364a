#include "kernel/gpu/gpu_kernel.h"

#include <algorithm>
#include <optional>

#include <anneal/error.h>

#include "kernel/gpu/passes.h"
#include "kernel/plan/workgroup_memory.h"
#include "kernel/planned_body.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Whether what the plan keeps has room, as gpu_program() will place it.
bool fits(const PlannedBody& planned, const Capabilities& capabilities) {
  if (planned.is_empty()) return true;
  return fits_workgroup(planned.plan, *planned.analysis, capabilities,
                        !is_disabled("place-locals", {}));
}

// By the planner's own plan, so that its tiles fit the memory of a workgroup, if they can: the less
// is kept there, the smaller they are. `options` becomes what that took.
std::optional<PlannedBody> plan_within(const KernelBody& body, LowerOptions& options) {
  Capabilities& capabilities = options.capabilities;
  std::vector<std::string>& disabled = options.disabled;
  options.plan.clear();
  while (true) {
    PlannedBody planned = plan_body(body, options);
    if (fits(planned, capabilities)) return planned;
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

PlannedBody plan_own(const KernelBody& body, LowerOptions& options) {
  std::optional<PlannedBody> planned = plan_within(body, options);
  if (!planned) throw InternalError("a kernel does not fit the memory of a workgroup");
  return *std::move(planned);
}

}  // namespace

LowerOptions fitting_options(const KernelBody& body, const LowerOptions& options) {
  LowerOptions fitting = options;
  plan_own(body, fitting);
  fitting.plan = options.plan;
  return fitting;
}

GpuKernel make_gpu_kernel(const KernelBody& body, const LowerOptions& options) {
  LowerOptions fitting = options;
  PlannedBody planned = plan_own(body, fitting);
  if (!options.plan.empty()) {
    fitting.plan = options.plan;
    PlannedBody given = plan_body(body, fitting);
    if (given.refused.empty() && !fits(given, options.capabilities))
      given.refused = "it does not fit the memory of a workgroup";
    if (given.refused.empty())
      planned = std::move(given);
    else
      planned.refused = std::move(given.refused);
  }
  LoweredBody lowered = lower(planned, options.describe);
  return {std::move(lowered.program), lowered.cells, most_elements(body), std::move(lowered.plan),
          std::move(lowered.refused)};
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
  LowerOptions options{.capabilities = capabilities};
  return plan_within(body, options).has_value();
}

}  // namespace anneal
