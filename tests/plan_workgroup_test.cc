// Plans of workgroups as values: every candidate computes what the body does without races, and
// what is none of them is refused.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "body_interpreter.h"
#include "codegen/target_kernels.h"
#include "kernel/gpu/gpu_kernel.h"
#include "kernel/gpu/lower_combines.h"
#include "kernel/gpu/passes.h"
#include "kernel/gpu/place_locals.h"
#include "kernel/plan/plan_text.h"
#include "kernel/plan/workgroup_memory.h"
#include "kernel/planned_body.h"
#include "kernel/program/program_content.h"
#include "lower_check.h"
#include "program_interpreter.h"
#include "random_graph.h"
#include "replay.h"
#include "runtime/program/distinct_bodies.h"
#include "symbolic/bounds.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

// Calls `check(body, options, choices)` for every kernel of a program on a target.
template <typename Check>
void for_bodies(const Tensor& program, std::string_view target, const Check& check) {
  const Capabilities capabilities =
      capabilities_of(*find_target(target), {.precision = MatmulPrecision::High});
  const Schedule schedule =
      schedule_for(simplify_program(std::vector<NodeRef>{program.node()}), capabilities);
  GraphScope scope(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        const LowerOptions options{.capabilities = capabilities};
        check(part.body, options, plan_choices_for(part.body, options));
      }
}

// What a program leaves in its buffers, by all passes for GPUs.
std::vector<Value> ran(const KernelBody& body, const LoweredBody& lowered,
                       std::vector<Value> values) {
  const Program program =
      gpu_program(lowered.program, {.most_elements = most_elements(body), .memory = {}});
  std::vector<Value*> pointers;
  for (Value& value : values) pointers.push_back(&value);
  run_program(program, pointers, {}, bounds(lowered.cells).max);
  return values;
}

double largest_difference(const std::vector<Value>& a, const std::vector<Value>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].payload.size(); ++k) {
      const double x = a[i].at(static_cast<int64_t>(k)).as_double(),
                   y = b[i].at(static_cast<int64_t>(k)).as_double();
      const double difference = std::abs(x - y) / std::max(1.0, std::abs(y));
      if (!(difference <= largest)) largest = difference;
      if (std::isnan(difference)) return INFINITY;
    }
  return largest;
}

// Whether what a plan says it takes is what its program does.
struct MemoryCheck {
  size_t plans = 0, shared = 0, own = 0;

  void operator()(const KernelBody& body, const LowerOptions& options) {
    check(body, options);
    if (body.tiles.empty() && body.stores.size() == 1) return;
    // As where it did not fit.
    LowerOptions less = options;
    less.capabilities.fast_memory_bytes /= 4;
    less.capabilities.nearest_memory_bytes /= 4;
    less.capabilities.tile_memory_bytes /= 4;
    check(body, less);
    less.disabled = {"stage", "online-reduction"};
    check(body, less);
  }
  void check(const KernelBody& body, const LowerOptions& options) {
    PlannedBody planned = plan_body(body, options);
    if (planned.is_empty()) return;
    const bool units = options.capabilities.matrix_element_bytes == 2;
    const int subgroup = options.capabilities.fixed_subgroup_threads;
    const WorkgroupMemory memory =
        workgroup_memory(planned.plan, *planned.analysis, units, true, subgroup);
    CAPTURE(summary(planned.plan, *planned.analysis));
    Program program = lower(planned, false).program;
    lanes_to_threads(program);
    place_locals(program);
    lower_combines(program, subgroup);
    program.emulates_matrices = program.matrix_unit && !units;
    const LocalBytes bytes = gpu_local_bytes(program);
    CHECK(memory.of_group == bytes.of_group);
    CHECK(memory.of_thread == bytes.of_thread);
    ++plans;
    shared += bytes.of_group > 0 ? 1 : 0;
    own += bytes.of_thread > 0 ? 1 : 0;
  }
  // Of all kernels of a program, in its graph.
  void operator()(std::span<const NodeRef> roots, const Capabilities& capabilities) {
    const Schedule schedule = schedule_for(simplified_for(roots, capabilities), capabilities);
    GraphScope scope(*schedule.graph);
    for (const KernelBody* body : distinct_bodies(schedule).bodies)
      (*this)(*body, {.capabilities = capabilities});
  }
};

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

}  // namespace

TEST_CASE("plans of workgroups: candidates are accepted and compute what the body does") {
  const Tensor x = input("x", {24, 36}), y = input("y", {36, 20}), wide = input("wide", {5, 300}),
               h = input("h", {24, 36}, DType::F16), k = input("k", {36, 20}, DType::F16);
  const std::vector<Tensor> programs{
      matmul(x, y),         matmul(h.cast(DType::F32), k.cast(DType::F32)),
      relu(wide * 2 + 1),   input("t", {96, 70}).cast(DType::BF16),
      softmax(wide),        sum(wide, {0}),
      layer_norm(wide) * 3, transpose(input("square", {260, 260})) * 2,
      cumsum(x, 1)};
  std::mt19937_64 random(7);
  std::map<std::string, int> tried;
  for (const char* target : {"webgpu-minimum", "webgpu-h200", "webgpu-software"})
    for (const Tensor& program : programs) {
      CAPTURE(target);
      for_bodies(
          program, target,
          [&](const KernelBody& body, const LowerOptions& options,
              const std::vector<PlanChoice>& choices) {
            REQUIRE(!choices.empty());
            std::vector<Value> before;
            for (NodeRef buffer : body.buffers)
              before.push_back(random_value(buffer->dtype, bounds(buffer->dim(0)).max, random));
            std::vector<Value> expected = before;
            std::vector<Value*> pointers;
            for (Value& value : expected) pointers.push_back(&value);
            run_body(body, pointers);
            for (size_t i = 0; i < choices.size(); ++i) {
              CAPTURE(choices[i].plan);
              CHECK(choices[i].nanoseconds > 0);
              CHECK(choices[i].memory_bytes <= options.capabilities.workgroup_bytes);
              LowerOptions given = options;
              given.plan = choices[i].plan;
              given.describe = true;
              const LoweredBody lowered = lower_for(body, given);
              CHECK(lowered.refused == "");
              CHECK(lowered.plan == choices[i].summary);
              // Rectangles of products are slow to interpret: every eighth.
              if (i % 8 != 0 && choices[i].summary.starts_with("group")) continue;
              CHECK(largest_difference(ran(body, lowered, before), expected) < 0.02);
              ++tried[first_word(choices[i].summary)];
            }
          });
    }
  for (const char* kind : {"cell", "elements", "transpose", "group-product"}) {
    CAPTURE(kind);
    CHECK(tried[kind] > 1);
  }
}

TEST_CASE("plans of workgroups: what is none of them is refused, and the planner's is used") {
  const Tensor product = matmul(input("x", {64, 64}), input("y", {64, 64}));
  for_bodies(product, "webgpu-h200",
             [&](const KernelBody& body, const LowerOptions& options,
                 const std::vector<PlanChoice>& choices) {
               CHECK(choices.size() > 20);
               CHECK(std::ranges::is_sorted(choices.begin() + 1, choices.end(), {},
                                            &PlanChoice::nanoseconds));
               const std::string expected = content(lower_for(body, options).program);
               auto refused = [&](std::string plan, std::string_view what, std::string_view with) {
                 const size_t at = plan.find(what);
                 REQUIRE(at != std::string::npos);
                 LowerOptions given = options;
                 given.plan = plan.replace(at, what.size(), with);
                 const LoweredBody lowered = lower_for(body, given);
                 CHECK(content(lowered.program) == expected);
                 return !lowered.refused.empty();
               };
               size_t products = 0;
               for (const PlanChoice& choice : choices) {
                 const std::string& plan = choice.plan;
                 if (!plan.starts_with("workgroup-product") || ++products > 2) continue;
                 CHECK(refused(plan, "k-tile ", "k-tile 1"));
                 CHECK(refused(plan, "k-tiles ", "k-tiles 3"));
                 CHECK(refused(plan, "unroll ", "unroll 1"));
                 CHECK(refused(plan, "threads ", "threads 3"));
                 CHECK(refused(plan, "copies ", "copies 1"));
                 CHECK(refused(plan, "zero-padded 1", "zero-padded 0"));
                 CHECK(refused(plan, "simd 0", "simd 1"));
               }
               CHECK(products > 2);
             });
  for_bodies(relu(input("x", {4096, 300})), "webgpu-h200",
             [&](const KernelBody& body, const LowerOptions& options,
                 const std::vector<PlanChoice>& choices) {
               CHECK(choices.size() > 5);
               LowerOptions given = options;
               for (const char* copies : {"copies 3", "copies 64"}) {
                 given.plan = choices[0].plan;
                 given.plan.replace(given.plan.find("copies 1"), 8, copies);
                 CHECK(lower_for(body, given).refused != "");
               }
             });
}

TEST_CASE("plans of workgroups: what they take of memory is what their programs do") {
  MemoryCheck check;
  for (const ReplayTarget& target : replay_targets()) {
    if (target.capabilities.workgroup_threads == 0) continue;
    CAPTURE(target.name);
    for (const ReplayProgram& program : replay_programs()) {
      CAPTURE(program.name);
      Graph graph;
      GraphScope scope(graph);
      check(program.build(), target.capabilities);
    }
    for (uint64_t seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      Graph graph;
      GraphScope scope(graph);
      check(random_graph(seed, {.f64 = false}), target.capabilities);
    }
  }
  CHECK(check.plans > 2000);
  CHECK(check.shared > 1000);
  CHECK(check.own > 20);
}
