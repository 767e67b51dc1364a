// How the kernels of a listing are planned: the plan of each part, what it is expected to take, and
// the plans that come next.
#pragma once

#include <optional>
#include <vector>

#include "cli/json.h"
#include "kernel/lower.h"
#include "runtime/cpu/plan_records.h"
#include "runtime/inspect/kernel_listing.h"

namespace anneal::cli {

struct PartPlans {
  std::vector<PlanChoice> choices;     // the planner's own, then runners-up
  std::optional<PlanRecord> recorded;  // what a search found, where this CPU runs it
};

// In the graph of the schedule. `recorded`: as this CPU runs it.
PartPlans plans_of(const KernelPart& part, const Capabilities& capabilities, bool recorded);

std::string plans_text(const PartPlans& plans);
Json plans_json(const PartPlans& plans);

}  // namespace anneal::cli
