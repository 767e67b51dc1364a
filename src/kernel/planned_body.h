// A body with the plan it runs by: what is known before anything is emitted.
#pragma once

#include <memory>
#include <string>

#include "kernel/lower.h"
#include "kernel/plan/kernel_plan.h"

namespace anneal {

struct PlannedBody {
  KernelBody body;        // as it was given
  PreparedBody prepared;  // what the plan is made for
  std::unique_ptr<Analysis> analysis = nullptr;
  KernelPlan plan = {};      // of a body that stores something
  std::string refused = {};  // see LoweredBody

  bool is_empty() const { return prepared.body.stores.empty(); }
};

// In the current graph, which must be the body's own.
PlannedBody plan_body(const KernelBody& body, const LowerOptions& options);
LoweredBody lower(PlannedBody& planned, bool describe);

}  // namespace anneal
