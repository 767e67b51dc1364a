#include "kernel/plan/plan.h"

#include "kernel/plan/cpu/cpu_planner.h"
#include "kernel/plan/gpu/gpu_planner.h"

namespace anneal {

Planner::Planner(Analysis& analysis, const Capabilities& capabilities,
                 const std::vector<std::string>& disabled) {
  if (capabilities.workgroup_threads > 0)
    planner_ = std::make_unique<GpuPlanner>(analysis, capabilities, disabled);
  else
    planner_ = std::make_unique<CpuPlanner>(analysis, capabilities, disabled);
}
Planner::~Planner() = default;

KernelPlan Planner::plan(bool row_lanes) { return planner_->plan(row_lanes); }
std::vector<PlanCandidate> Planner::candidates(bool row_lanes) {
  return planner_->candidates(row_lanes);
}
std::string Planner::why_not(const KernelPlan& plan, bool row_lanes) {
  return planner_->why_not(plan, row_lanes);
}

}  // namespace anneal
