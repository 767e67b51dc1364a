#include "runtime/device/tuned_plans.h"

#include <utility>

#include <fmt/format.h>

#include "base/notice.h"
#include "base/os/mutex.h"
#include "rewrite/passes.h"

namespace anneal {
namespace {

thread_local const TunedPlansScope* scope = nullptr;

struct Searcher {
  Mutex mutex;
  PlanSearch search;
};
Searcher& searcher() {
  static auto& one = *new Searcher;  // lives as long as the process
  return one;
}
thread_local bool searching = false;

}  // namespace

std::string tuned_plan(TunedPlans* plans, const KernelBody& body) {
  if (scope) plans = scope->plans_;
  if (!plans || !pass_requests().disabled.empty()) return "";
  std::optional<PlanRecord> record = plans->find(body);
  return record ? std::move(record->plan) : "";
}

void report_refused(const std::string& why) {
  notice(fmt::format("a tuned plan is not used: {}", why),
         "anneal cache clear removes it, anneal tune finds another one");
}

void search_plans(PlanSearch search) {
  const Lock lock(searcher().mutex);
  searcher().search = std::move(search);
}

void run_plan_search(const Schedule& schedule, Device& device) {
  if (searching) return;
  const Lock lock(searcher().mutex);
  if (!searcher().search) return;
  struct Searching {
    Searching() { searching = true; }
    ~Searching() { searching = false; }
  } const now;
  searcher().search(schedule, device);
}

TunedPlansScope::TunedPlansScope(TunedPlans* plans)
    : plans_(plans), around_(std::exchange(scope, this)) {}
TunedPlansScope::~TunedPlansScope() { scope = around_; }

}  // namespace anneal
