// What becomes of candidates, on a GPU whose kernels are interpreted and whose times are made up:
// alone and within the program.
#include <map>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "codegen/target_kernels.h"
#include "interpreted_gpu.h"
#include "ir/index.h"
#include "runtime/device/kernel_bench.h"
#include "runtime/device/tuned_plans.h"
#include "target/target.h"
#include "tensor/lift.h"
#include "transform/simplify.h"
#include "tune/tune.h"

using namespace anneal;

namespace {

constexpr double kOwn = 1e-2;  // seconds of the planner's own

// As long as a test takes.
class PlansInMemory : public TunedPlans {
 public:
  std::optional<PlanRecord> find(const KernelBody& body) override {
    const auto known = records.find(to_text(body));
    return known == records.end() ? std::nullopt : std::optional(known->second);
  }
  void keep(const KernelBody& body, PlanRecord record) override {
    records[to_text(body)] = std::move(record);
  }
  std::map<std::string, PlanRecord> records;
};

// What is compiled first of a kernel is the planner's own.
class MadeUpBench : public KernelBench {
 public:
  MadeUpBench(std::unique_ptr<KernelBench> real, double candidate)
      : real_(std::move(real)), candidate_(candidate) {}
  int compiled_at_once() const override { return 4; }
  std::vector<std::shared_ptr<const BenchKernel>> compile(
      const KernelBody& body, std::span<const LoweredBody> lowered) override {
    auto made = real_->compile(body, lowered);
    if (!own_) own_ = made[0];
    return made;
  }
  double run(const BenchKernel& kernel, std::span<const BufferRef> places, int) override {
    real_->run(kernel, places, 1);
    return &kernel == own_.get() ? kOwn : candidate_;
  }

 private:
  std::unique_ptr<KernelBench> real_;
  double candidate_;
  std::shared_ptr<const BenchKernel> own_;
};

class MadeUpExecutable : public Executable {
 public:
  explicit MadeUpExecutable(double seconds) : seconds_(seconds) {}
  void run(const RunArguments&, int, int) const override {}
  std::vector<double> run_timed(const RunArguments&, std::span<const int> bounds) const override {
    return std::vector<double>(bounds.size() - 1, seconds_);
  }

 private:
  double seconds_;
};

class MadeUpGpu : public Device {
 public:
  MadeUpGpu(double alone, double within)
      : real_(capabilities_of(*find_target("webgpu-minimum"))), alone_(alone), within_(within) {}

  std::string_view name() const override { return "made-up"; }
  const Capabilities& capabilities() const override { return real_.capabilities(); }
  std::unique_ptr<Executable> compile(const Schedule& schedule, std::span<const NodeRef>) override {
    const bool own = tuned_plan(&plans, schedule.kernels[0].phases[0][0].body).empty();
    return std::make_unique<MadeUpExecutable>(own ? kOwn : within_);
  }
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override { return real_.allocate(bytes); }
  int64_t available_bytes() const override { return real_.available_bytes(); }
  bool shares_host_memory() const override { return false; }
  void copy_in(std::span<const std::byte> from, BufferRef to) override { real_.copy_in(from, to); }
  void copy_out(BufferRef from, std::span<std::byte> to) override { real_.copy_out(from, to); }
  TunedPlans* tuned_plans() override { return &plans; }
  std::unique_ptr<KernelBench> kernel_bench() override {
    return std::make_unique<MadeUpBench>(real_.kernel_bench(), alone_);
  }

  PlansInMemory plans;

 private:
  InterpretedGpu real_;
  double alone_, within_;  // seconds of candidates
};

// One kernel of elements.
struct Program {
  Graph graph;
  GraphScope scope{graph};
  Schedule schedule;
  explicit Program(const Device& device)
      : schedule(
            schedule_for(simplify_program(std::vector{node_of(relu(input("x", {8, 96}) * 2 + 1))}),
                         device.capabilities())) {}
};

TunedKernel tuned(MadeUpGpu& device, TuneOptions options = {}) {
  const Program program(device);
  options.seconds = 600;
  const TuneReport report = tune(program.schedule, device, options);
  REQUIRE(report.kernels.size() == 1);
  REQUIRE(device.plans.records.size() == 1);
  return report.kernels[0];
}

std::string recorded(const MadeUpGpu& device) { return device.plans.records.begin()->second.plan; }

}  // namespace

TEST_CASE("tune outcomes: what is faster alone and within the program is recorded") {
  MadeUpGpu device(kOwn / 2, kOwn / 2);
  const TunedKernel kernel = tuned(device);
  CHECK(kernel.outcome == TuneOutcome::Improved);
  CHECK(kernel.tried > 5);
  CHECK(kernel.wrong == 0);
  CHECK(kernel.seconds == kOwn / 2);
  CHECK(kernel.planner_seconds == kOwn);
  CHECK(recorded(device) != "");
  const TunedKernel again = tuned(device);
  CHECK(again.outcome == TuneOutcome::Known);
  CHECK(again.plan == kernel.plan);
}

TEST_CASE("tune outcomes: what is slower within the program is taken back") {
  MadeUpGpu device(kOwn / 2, kOwn * 2);
  const TunedKernel kernel = tuned(device);
  CHECK(kernel.outcome == TuneOutcome::Undone);
  CHECK(kernel.seconds == kernel.planner_seconds);
  CHECK(recorded(device) == "");
  CHECK(tuned(device).outcome == TuneOutcome::Known);
}

TEST_CASE("tune outcomes: a search that ends early records nothing that is only faster alone") {
  MadeUpGpu device(kOwn / 2, kOwn / 2);
  Graph graph;
  const GraphScope scope(graph);
  const std::vector roots{node_of(relu(input("x", {8, 96}) * 2 + 1)),
                          node_of(exp(input("y", {16, 160})) * 3)};
  const Schedule schedule = schedule_for(simplify_program(roots), device.capabilities());
  size_t searched = 0;
  const TuneReport report =
      tune(schedule, device, {.seconds = 600, .progress = [&](const TuneProgress& progress) {
                                searched = progress.kernel;
                                return progress.kernel < 2;
                              }});
  CHECK(searched == 2);
  REQUIRE(report.kernels.size() == 2);
  CHECK(report.kernels[0].tried > 5);
  CHECK(report.count(TuneOutcome::Left) == 2);
  CHECK(device.plans.records.empty());
}

TEST_CASE("tune outcomes: what is hardly faster is not worth it") {
  MadeUpGpu device(kOwn * 0.99, kOwn / 2);
  CHECK(tuned(device).outcome == TuneOutcome::Kept);
  CHECK(recorded(device) == "");
}

TEST_CASE("tune outcomes: what computes something else is refused, however fast") {
  MadeUpGpu device(kOwn / 2, kOwn / 2);
  TuneOptions options;
  options.lower = [](const KernelBody& body, const LowerOptions& lower) {
    LoweredBody lowered = lower_for(body, lower);
    for (Instruction& each : lowered.program.code)  // the other way round
      if (!lower.plan.empty() && each.code == Code::Compute && each.op == Op::Where &&
          is_float(each.dtype))
        std::swap(each.operands[1], each.operands[2]);
    return lowered;
  };
  const TunedKernel kernel = tuned(device, options);
  CHECK(kernel.outcome == TuneOutcome::Kept);
  CHECK(kernel.tried > 5);
  CHECK(kernel.wrong == kernel.tried);
  CHECK(kernel.why.starts_with("buffer "));
  CHECK(recorded(device) == "");
}

TEST_CASE("tune outcomes: a plan that is refused when it is lowered is none") {
  MadeUpGpu device(kOwn / 2, kOwn / 2);
  TuneOptions options;
  options.lower = [](const KernelBody& body, const LowerOptions& lower) {
    LowerOptions wrong = lower;
    if (!wrong.plan.empty()) wrong.plan += " more";
    return lower_for(body, wrong);
  };
  const TunedKernel kernel = tuned(device, options);
  CHECK(kernel.outcome == TuneOutcome::Kept);
  CHECK(kernel.wrong == kernel.tried);
  CHECK(kernel.why == "\"more\" is too much");
}
