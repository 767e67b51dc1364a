// Plans that were measured to do better than the planner's own, by which devices compile; and the
// search that may come before it compiles. Must not measure anything, nor know where they are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "body/kernel_body.h"
#include "runtime/device/device.h"

namespace anneal {

struct PlanRecord {
  std::string plan;  // as LowerOptions takes it; empty: the planner's own does best
  double planner_seconds = 0, seconds = 0;  // of a run with the planner's own, and with this one
  int64_t tried = 0;                        // candidates
};

// Any thread may call.
class TunedPlans {
 public:
  TunedPlans() = default;
  virtual ~TunedPlans() = default;
  TunedPlans(const TunedPlans&) = delete;
  TunedPlans& operator=(const TunedPlans&) = delete;

  // In the graph of the body.
  virtual std::optional<PlanRecord> find(const KernelBody& body) = 0;
  virtual void keep(const KernelBody& body, PlanRecord record) = 0;
};

// As LowerOptions takes it: what is recorded for a body, which is of kernels that every pass has
// seen. `plans`: the device's, or null.
std::string tuned_plan(TunedPlans* plans, const KernelBody& body);
// Says so where such a plan was refused, for `why`.
void report_refused(const std::string& why);

// Called before a schedule is compiled for a device that takes tuned plans, by the thread that does
// so, and not for what it compiles itself; it may keep records. An empty one ends that.
using PlanSearch = std::function<void(const Schedule& schedule, Device& device)>;
void search_plans(PlanSearch search);
void run_plan_search(const Schedule& schedule, Device& device);

// While one lives, this thread compiles by these plans instead of the device's; null: by the
// planner's own.
class TunedPlansScope {
 public:
  explicit TunedPlansScope(TunedPlans* plans);
  ~TunedPlansScope();
  TunedPlansScope(const TunedPlansScope&) = delete;
  TunedPlansScope& operator=(const TunedPlansScope&) = delete;

 private:
  friend std::string tuned_plan(TunedPlans* plans, const KernelBody& body);
  TunedPlans* const plans_;
  const TunedPlansScope* const around_;
};

}  // namespace anneal
