// How the kernels of a listing are planned: the plan of each part, what it is expected to take, and
// the plans that come next.
#pragma once

#include <optional>
#include <vector>

#include "cli/json.h"
#include "kernel/lower.h"
#include "runtime/device/tuned_plans.h"
#include "runtime/inspect/kernel_listing.h"

namespace anneal::cli {

struct PartPlans {
  std::vector<PlanChoice> choices;     // the planner's own, then runners-up
  std::optional<PlanRecord> recorded;  // what a search found, where a device is here
};

// In the graph of the schedule. `tuned`: what is recorded of the device; null: there is none.
PartPlans plans_of(const KernelPart& part, const Capabilities& capabilities, TunedPlans* tuned);

std::string plans_text(const PartPlans& plans);
Json plans_json(const PartPlans& plans);

}  // namespace anneal::cli
