// The search for plans: it records what is faster and right, refuses what is wrong, and searches
// nothing twice.
#include "tune/tune.h"

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "ir/index.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/kernel_bench.h"
#include "runtime/disk/plan_records.h"
#include "schedule/schedule.h"
#include "temporary_folder.h"
#include "tensor/lift.h"
#include "transform/simplify.h"
#include "tune/kernel_trial.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// A product with what follows it, on the CPU.
struct Product {
  Graph graph;
  GraphScope scope{graph};
  std::unique_ptr<Device> device = make_cpu_device();
  Schedule schedule = schedule_program(
      simplify_program(
          std::vector{node_of(relu(matmul(input("a", {96, 160}), input("b", {160, 224}))))}),
      {device->capabilities(), {}});
  const KernelBody& body() const { return schedule.kernels[0].phases[0][0].body; }
};

// Leaves the last cells of every plan but the planner's own undone.
LoweredBody lower_without_end(const KernelBody& body, const LowerOptions& options) {
  LoweredBody lowered = lower(body, options);
  if (!options.plan.empty()) lowered.cells = index_const(0);
  return lowered;
}

}  // namespace

TEST_CASE("tune: searches once, and what it records is a plan of the kernel") {
  const TemporaryFolder folder;
  Product product;
  PlanRecords records(folder.path(), product.device->target(), "");
  int64_t told = 0;
  const TuneOptions options{.seconds = 60,
                            .progress =
                                [&](const TuneProgress& progress) {
                                  CHECK(progress.kernel == 1);
                                  CHECK(progress.kernels == 1);
                                  told = progress.tried;
                                  return true;
                                },
                            .records = &records};
  const TuneReport report = tune(product.schedule, *product.device, options);
  REQUIRE(report.kernels.size() == 1);
  const TunedKernel& found = report.kernels[0];
  CHECK((found.outcome == TuneOutcome::Improved || found.outcome == TuneOutcome::Kept ||
         found.outcome == TuneOutcome::Undone));
  CHECK(found.tried > 0);
  CHECK(found.wrong == 0);
  CHECK(told == found.tried);
  CHECK(found.seconds > 0);
  CHECK(found.seconds <= found.planner_seconds);

  GraphScope scope(*product.schedule.graph);
  const std::optional<PlanRecord> record = records.find(product.body());
  REQUIRE(record.has_value());
  CHECK(record->plan.empty() == (found.outcome != TuneOutcome::Improved));
  LowerOptions recorded{.capabilities = product.device->capabilities()};
  recorded.plan = record->plan;
  CHECK(lower(product.body(), recorded).refused == "");

  const TuneReport again = tune(product.schedule, *product.device, options);
  REQUIRE(again.kernels.size() == 1);
  CHECK(again.kernels[0].outcome == TuneOutcome::Known);
  CHECK(again.tried() == 0);
}

TEST_CASE("tune: candidates that compute something else are refused") {
  const TemporaryFolder folder;
  Product product;
  PlanRecords records(folder.path(), product.device->target(), "");
  const TuneReport report = tune(product.schedule, *product.device,
                                 {.seconds = 60, .records = &records, .lower = lower_without_end});
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].tried > 0);
  CHECK(report.kernels[0].wrong == report.kernels[0].tried);
  CHECK(report.kernels[0].outcome == TuneOutcome::Kept);
  GraphScope scope(*product.schedule.graph);
  const std::optional<PlanRecord> record = records.find(product.body());
  REQUIRE(record.has_value());
  CHECK(record->plan == "");
}

TEST_CASE("tune: stops where it is told to, and records nothing it did not search") {
  const TemporaryFolder folder;
  Product product;
  PlanRecords records(folder.path(), product.device->target(), "");
  const TuneReport none =
      tune(product.schedule, *product.device, {.seconds = 0.01, .records = &records});
  REQUIRE(none.kernels.size() == 1);
  CHECK(none.kernels[0].outcome == TuneOutcome::Left);
  const TuneReport stopped = tune(
      product.schedule, *product.device,
      {.seconds = 5, .progress = [](const TuneProgress&) { return false; }, .records = &records});
  CHECK(stopped.kernels[0].outcome == TuneOutcome::Left);
  CHECK(folder.files().empty());
}

TEST_CASE("tune: a trial finds small mistakes") {
  Product product;
  GraphScope scope(*product.schedule.graph);
  const LowerOptions options{.capabilities = product.device->capabilities()};
  CHECK(KernelTrial::why_not(product.body(), 1 << 20) == "");
  CHECK(KernelTrial::why_not(product.body(), 1 << 10) != "");
  const std::unique_ptr<KernelBench> bench = product.device->kernel_bench();
  KernelTrial trial(product.body(), *product.device, *bench);
  const TrialKernel own = trial.compile(lower(product.body(), options));
  REQUIRE(trial.set_reference(own));
  CHECK(trial.why_wrong(own) == "");
  CHECK(trial.seconds(own, 1) > 0);

  // One vector of activations is the wrong way round.
  const LoweredBody lowered = lower(product.body(), options);
  size_t wrong = 0, tried = 0;
  for (size_t i = 0; i < lowered.program.code.size(); ++i) {
    const Instruction& each = lowered.program.code[i];
    if (each.code != Code::Compute || each.op != Op::Where || !is_float(each.dtype)) continue;
    LoweredBody changed = lower(product.body(), options);
    std::swap(changed.program.code[i].operands[1], changed.program.code[i].operands[2]);
    ++tried;
    wrong += trial.why_wrong(trial.compile(changed)).empty() ? 0 : 1;
  }
  CHECK(tried > 0);
  CHECK(wrong == tried);
}
