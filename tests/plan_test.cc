// Plans are values: their text is read back as the same plan, what they take is known before
// anything is emitted, and a plan that does not follow from the body is refused.
#include "kernel/plan/plan.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "codegen/target_kernels.h"
#include "kernel/lower.h"
#include "kernel/plan/plan_check.h"
#include "kernel/plan/plan_text.h"
#include "kernel/program/program_content.h"
#include "replay.h"
#include "runtime/program/distinct_bodies.h"

using namespace anneal;

namespace {

// Calls `check(body, options)` for every kernel of a program on every target.
template <typename Check>
void for_all_bodies(std::string_view program, const Check& check) {
  const auto row = std::ranges::find(replay_programs(), program, &ReplayProgram::name);
  REQUIRE(row != replay_programs().end());
  for (const ReplayTarget& target : replay_targets()) {
    CAPTURE(target.name);
    Graph graph;
    GraphScope scope(graph);
    const Schedule schedule =
        schedule_for(simplified_for(row->build(), target.capabilities), target.capabilities);
    GraphScope schedule_scope(*schedule.graph);
    for (const KernelBody* body : distinct_bodies(schedule).bodies)
      check(*body, LowerOptions{.capabilities = target.capabilities});
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

// The body of one product for a CPU of few registers, and the text of its plan.
struct Product {
  template <typename Check>
  static void with(const Check& check) {
    Graph graph;
    GraphScope scope(graph);
    const auto row = std::ranges::find(replay_programs(), "gemm", &ReplayProgram::name);
    const Capabilities capabilities = capabilities_of(*find_target("cpu-avx2"));
    const Schedule schedule =
        schedule_for(simplified_for(row->build(), capabilities), capabilities);
    GraphScope schedule_scope(*schedule.graph);
    const KernelBody& body = *distinct_bodies(schedule).bodies[0];
    const LowerOptions options{.capabilities = capabilities};
    check(body, options, plan_choices(body, options));
  }
};

}  // namespace

TEST_CASE("plans: text is read back as the same plan, and memory is what emission asks for") {
  size_t plans = 0, with_memory = 0;
  for (const char* program :
       {"gemm", "conv", "nanogpt", "gemm-symbolic", "gemm-bf16", "columns", "attention-long"})
    for_all_bodies(program, [&](const KernelBody& body, const LowerOptions& options) {
      const PreparedBody prepared = prepare(body, options);
      if (prepared.body.stores.empty()) return;
      Analysis analysis(prepared.body);
      Planner planner(analysis, options.capabilities, {});
      const KernelPlan plan = planner.plan(prepared.row_lanes);
      const std::string text = to_text(plan, analysis);
      CAPTURE(text);
      CHECK(verify(plan, analysis) == "");
      std::string problem;
      const std::optional<KernelPlan> read = parse_plan(text, analysis, problem);
      CHECK(problem == "");
      REQUIRE(read.has_value());
      CHECK(to_text(*read, analysis) == text);
      CHECK(hash_of(*read, analysis) == hash_of(plan, analysis));
      CHECK(summary(*read, analysis) == summary(plan, analysis));
      CHECK(registers(*read) >= 1);

      const LoweredBody lowered = lower(body, options);
      CHECK(cell_memory(plan, analysis) == lowered.program.locals);
      ++plans;
      with_memory += lowered.program.locals.empty() ? 0 : 1;

      LowerOptions given = options;
      given.plan = text;
      const LoweredBody again = lower(body, given);
      CHECK(again.refused == "");
      CHECK(content(again.program) == content(lowered.program));
    });
  CHECK(plans > 100);
  CHECK(with_memory > 20);
}

TEST_CASE("plans: candidates are legal, differ, and are emitted as given") {
  Product::with([](const KernelBody& body, const LowerOptions& options,
                   const std::vector<PlanChoice>& choices) {
    CHECK(choices.size() > 20);
    CHECK(std::ranges::is_sorted(choices.begin() + 1, choices.end(), {}, &PlanChoice::nanoseconds));
    for (size_t i = 0; i < choices.size(); ++i) {
      CAPTURE(choices[i].plan);
      CHECK(choices[i].nanoseconds > 0);
      CHECK(choices[i].registers <= options.capabilities.vector_registers);
      CHECK(choices[i].memory_bytes > 0);
      for (size_t k = 0; k < i; ++k) CHECK(choices[i].plan != choices[k].plan);
      LowerOptions given = options;
      given.plan = choices[i].plan;
      given.describe = true;
      const LoweredBody lowered = lower(body, given);
      CHECK(lowered.refused == "");
      CHECK(lowered.plan == choices[i].summary);
      CHECK(verify(lowered.program) == "");
    }
  });
}

TEST_CASE("plans: loops have candidates with other blocks, and no others are taken for theirs") {
  size_t several = 0;
  for_all_bodies("norms", [&](const KernelBody& body, const LowerOptions& options) {
    if (options.capabilities.workgroup_threads > 0) return;
    const std::vector<PlanChoice> choices = plan_choices(body, options);
    for (const PlanChoice& choice : choices) {
      CAPTURE(choice.plan);
      LowerOptions given = options;
      given.plan = choice.plan;
      given.describe = true;
      const LoweredBody lowered = lower(body, given);
      CHECK(lowered.refused == "");
      CHECK(lowered.plan == choice.summary);
      if (!choice.plan.starts_with("cell")) continue;
      several += choices.size() > 1 ? 1 : 0;
      given.plan = replaced(choice.plan, "block ", "block 1000000");
      CHECK(lower(body, given).refused != "");
    }
  });
  CHECK(several > 10);
}

TEST_CASE("plans: what is no plan of the body is refused, and the planner's is used") {
  Product::with([](const KernelBody& body, const LowerOptions& options,
                   const std::vector<PlanChoice>& choices) {
    const std::string own = choices[0].plan;
    const std::string expected = content(lower(body, options).program);
    auto refused = [&](const std::string& plan) {
      LowerOptions given = options;
      given.plan = plan;
      const LoweredBody lowered = lower(body, given);
      CHECK(content(lowered.program) == expected);
      return lowered.refused;
    };
    CHECK(refused("nothing") == "\"nothing\" is no kind of plan");
    CHECK(refused(own.substr(0, own.size() / 2)) != "");
    CHECK(refused(own + " more") == "\"more\" is too much");
    CHECK(refused(replaced(own, "sums [", "sums [99999 ")) == "there is no node 99999");
    CHECK(refused(replaced(own, "sums [", "sums [0 ")) != "");
    CHECK(refused(replaced(own, "axis 0", "axis 77")) == "there is no axis 77");
    CHECK(refused(replaced(own, "flat-stores 1", "flat-stores 2")) == "2 is neither 0 nor 1");
    CHECK(refused(replaced(own, "flat-stores 1", "flat-stores 0")) ==
          "parts of it do not follow from the others");
    CHECK(refused(replaced(own, "k-tile ", "k-tile 9")) != "");
    CHECK(refused(replaced(own, "of-rows 0", "of-rows 1")) ==
          "parts of it do not follow from the others");
    CHECK(refused(replaced(own, "simd 1", "simd 0")) ==
          "parts of it do not follow from the others");
  });
}
