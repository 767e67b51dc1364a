// The search for plans on a GPU: as on the CPU it records what is faster and right, refuses what is
// wrong, and searches nothing twice.
#include <utility>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "base/notice.h"
#include "codegen/target_kernels.h"
#include "environment_scope.h"
#include "ir/index.h"
#include "runtime/device/kernel_bench.h"
#include "runtime/disk/plan_records.h"
#include "runtime/webgpu/webgpu_device.h"
#include "temporary_folder.h"
#include "tensor/lift.h"
#include "transform/simplify.h"
#include "tune/kernel_trial.h"
#include "tune/tune.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// A product with what follows it, on the adapter that is there.
struct Product {
  TemporaryFolder folder;
  EnvironmentScope directory{"ANNEAL_CACHE_DIR", folder.path()}, on{"ANNEAL_CACHE", "1"};
  Graph graph;
  GraphScope scope{graph};
  std::unique_ptr<Device> device = make_webgpu_device();
  Schedule schedule = schedule_for(simplify_program(std::vector{node_of(
                                       relu(matmul(input("a", {96, 64}), input("b", {64, 128}))))}),
                                   device->capabilities());
  const KernelBody& body() const { return schedule.kernels[0].phases[0][0].body; }
};

// Leaves out every cell of each plan but the planner's own.
LoweredBody lower_without_end(const KernelBody& body, const LowerOptions& options) {
  LoweredBody lowered = lower_for(body, options);
  if (!options.plan.empty()) lowered.cells = index_const(0);
  return lowered;
}

}  // namespace

TEST_CASE("webgpu tune: searches once, and what it records is used") {
  Product product;
  const TuneReport report = tune(product.schedule, *product.device, {.seconds = 120});
  REQUIRE(report.kernels.size() == 1);
  const TunedKernel& found = report.kernels[0];
  CHECK(found.tried > 3);
  CHECK(found.wrong == 0);
  CHECK(found.why == "");
  CHECK(found.seconds > 0);
  CHECK(found.seconds <= found.planner_seconds);
  CHECK(product.folder.files().size() == 1);
  GraphScope scope(*product.schedule.graph);
  const std::optional<PlanRecord> record = product.device->tuned_plans()->find(product.body());
  REQUIRE(record.has_value());
  CHECK(record->plan.empty() == (found.outcome != TuneOutcome::Improved));

  // Another process, as it were.
  const std::unique_ptr<Device> other = make_webgpu_device();
  const TuneReport again = tune(product.schedule, *other, {.seconds = 120});
  REQUIRE(again.kernels.size() == 1);
  CHECK(again.kernels[0].outcome == TuneOutcome::Known);
  CHECK(again.tried() == 0);
}

TEST_CASE("webgpu tune: candidates that compute something else are refused") {
  Product product;
  const TuneReport report =
      tune(product.schedule, *product.device, {.seconds = 120, .lower = lower_without_end});
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].tried > 0);
  CHECK(report.kernels[0].wrong == report.kernels[0].tried);
  CHECK(report.kernels[0].outcome == TuneOutcome::Kept);
  GraphScope scope(*product.schedule.graph);
  CHECK(product.device->tuned_plans()->find(product.body())->plan == "");
}

TEST_CASE("webgpu tune: kernels run by the recorded plan, and by none of another adapter") {
  Product product;
  GraphScope scope(*product.schedule.graph);
  const LowerOptions options{.capabilities = product.device->capabilities()};
  const std::vector<PlanChoice> choices = plan_choices_for(product.body(), options);
  REQUIRE(choices.size() > 1);
  std::vector<std::string> notices;
  read_notices([&](std::string_view what, std::string_view) { notices.emplace_back(what); });
  product.device->tuned_plans()->keep(product.body(), {choices[1].plan, 2, 1, 1});
  CHECK(product.device->compile(product.schedule, {}) != nullptr);
  CHECK(notices.empty());
  // A plan that the planner could not have made is said to be refused, so the record was read.
  product.device->tuned_plans()->keep(product.body(), {choices[1].plan + " more", 2, 1, 1});
  CHECK(product.device->compile(product.schedule, {}) != nullptr);
  CHECK(notices == std::vector<std::string>{"a tuned plan is not used: \"more\" is too much"});
  read_notices({});

  PlanRecords other(product.folder.path(), product.device->target(), "another driver");
  CHECK_FALSE(other.find(product.body()).has_value());
}

TEST_CASE("webgpu tune: a trial finds small mistakes") {
  Product product;
  GraphScope scope(*product.schedule.graph);
  const std::unique_ptr<KernelBench> bench = product.device->kernel_bench();
  KernelTrial trial(product.body(), *product.device, *bench);
  const LowerOptions options{.capabilities = product.device->capabilities()};
  const LoweredBody lowered = lower_for(product.body(), options);
  const TrialKernel own = trial.compile(lowered);
  REQUIRE(trial.set_reference(own));
  CHECK(trial.why_wrong(own) == "");
  CHECK(trial.seconds(own, 1) > 0);

  // One activation of every thread is the wrong way round.
  size_t wrong = 0, tried = 0;
  for (size_t i = 0; i < lowered.program.code.size() && tried < 4; ++i) {
    const Instruction& each = lowered.program.code[i];
    if (each.code != Code::Compute || each.op != Op::Where || !is_float(each.dtype)) continue;
    LoweredBody changed = lower_for(product.body(), options);
    std::swap(changed.program.code[i].operands[1], changed.program.code[i].operands[2]);
    ++tried;
    wrong += trial.why_wrong(trial.compile(changed)).empty() ? 0 : 1;
  }
  CHECK(tried > 0);
  CHECK(wrong == tried);
}
