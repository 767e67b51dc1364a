// Chooses how a body runs: which axes make the grid, what is vectorised, unrolled and tiled.
// A function of the body and the device's capabilities alone. Emits nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/plan/kernel_plan.h"
#include "target/capabilities.h"

namespace anneal {

class BodyPlanner;

// A way to run a body, and what it is expected to take.
struct PlanCandidate {
  KernelPlan plan;
  double nanoseconds = 0;  // on all cores
};

class Planner {
 public:
  Planner(Analysis& analysis, const Capabilities& capabilities,
          const std::vector<std::string>& disabled);
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // What does best, of all ways there are. `row_lanes`: of a body whose tiles are rows.
  KernelPlan plan(bool row_lanes = false);
  // The same first, then other ways that may do better than they are expected to, the most
  // promising first.
  std::vector<PlanCandidate> candidates(bool row_lanes = false);
  // Why a plan is none that this planner could make; empty: it is one. Such a plan computes what
  // the body does, wherever its text comes from.
  std::string why_not(const KernelPlan& plan, bool row_lanes = false);

 private:
  std::unique_ptr<BodyPlanner> planner_;  // for lanes of one kind or the other
};

}  // namespace anneal
