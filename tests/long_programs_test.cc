// Programs of thousands of operations: kernels stay short, compile time stays linear, and what
// comes out is what the interpreter says.
#include "models/long_programs.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>
#include <anneal/device.h>

#include "runtime/program/distinct_bodies.h"
#include "schedule/fuse/code_size.h"
#include "schedule/memory/memory_plan.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

std::vector<NodeRef> nodes_of(const std::vector<Tensor>& tensors) {
  std::vector<NodeRef> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.node());
  return nodes;
}

// With registers, and with groups of threads and few bindings, as GPUs have.
std::vector<Capabilities> devices_to_try() {
  Capabilities registers, groups;
  registers.tiles = true;
  registers.max_buffers = 1024;
  groups.workgroup_threads = groups.most_workgroup_threads = 256;
  groups.parallel_threads = 1 << 16;
  groups.max_buffers = 10;
  return {registers, groups};
}

double length_of(const KernelBody& body) {
  double length = 0;
  for (NodeRef node : topological_order(body.stores)) length += code_size(node);
  return length;
}

// What scheduling a program takes and gives.
struct Effort {
  double milliseconds = 0;  // of this thread
  size_t nodes = 0;         // of the program
  size_t made = 0;          // by the scheduler
  size_t bodies = 0;        // that are compiled
  double longest = 0;       // kernel
};

double thread_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Effort effort_of(const models::LongProgram& program, int64_t steps,
                 const Capabilities& capabilities) {
  Graph graph;
  GraphScope scope(graph);
  const std::vector<NodeRef> roots = nodes_of(program.build(steps));
  Effort effort;
  effort.nodes = topological_order(roots).size();
  const double before = thread_milliseconds();
  const Schedule schedule = schedule_program(simplify_program(roots), {capabilities, {}});
  const ShiftedBodies bodies = shifted_bodies(schedule);
  plan_memory(schedule);
  effort.milliseconds = thread_milliseconds() - before;
  effort.made = schedule.graph->node_count();
  effort.bodies = bodies.bodies.size();
  for (const KernelBody* body : bodies.bodies)
    effort.longest = std::max(effort.longest, length_of(*body));
  return effort;
}

std::vector<float> values(int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<float>(std::sin(static_cast<double>(i)) * 0.4 + 0.5));
  return result;
}

// Numbers for the inputs of a program.
Bindings filled(const std::vector<Tensor>& program) {
  Bindings bindings;
  for (NodeRef node : topological_order(nodes_of(program)))
    if (node->op == Op::Buffer) {
      std::vector<int64_t> sizes;
      int64_t count = 1;
      for (NodeRef dim : node->shape->dims()) {
        sizes.push_back(static_cast<int64_t>(dim->arg.bits));
        count *= sizes.back();
      }
      bindings.inputs.emplace_back(wrap(node),
                                   from_data(values(count), Sizes(sizes.begin(), sizes.end())));
    }
  return bindings;
}

}  // namespace

TEST_CASE("long programs: kernels stay short and scheduling stays linear") {
  constexpr int64_t kFewer = 16, kTimes = 4;
  for (const Capabilities& capabilities : devices_to_try())
    for (const models::LongProgram& program : models::long_programs()) {
      CAPTURE(program.name);
      CAPTURE(capabilities.workgroup_threads);
      const int64_t steps = std::max<int64_t>(24, program.steps / kFewer);
      const Effort one = effort_of(program, steps, capabilities);
      const Effort more = effort_of(program, steps * kTimes, capabilities);
      const double longer = static_cast<double>(more.nodes) / static_cast<double>(one.nodes);
      CHECK(more.longest <= static_cast<double>(capabilities.most_operations) * 1.25);
      CHECK(static_cast<double>(more.made) <= static_cast<double>(one.made) * longer * 1.5);
      // Measured beside whatever else runs: what is quadratic takes 16 times as long.
      CHECK(more.milliseconds <= one.milliseconds * longer * 2.5 + 20);
    }
}

TEST_CASE("long programs: the pieces of a chain are the same kernel") {
  const std::set<std::string_view> uniform{"y = sin(y)", "y = y * c + d", "y = y @ w", "LSTM"};
  const Capabilities capabilities = devices_to_try()[0];
  for (const models::LongProgram& program : models::long_programs()) {
    if (!uniform.contains(program.name)) continue;
    CAPTURE(program.name);
    CHECK(effort_of(program, program.steps, capabilities).bodies <= 12);
  }
}

TEST_CASE("long programs: results are the interpreter's") {
  const std::map<std::string_view, int64_t> steps{{"y = sin(y)", 200},
                                                  {"y = sin(y), its gradient", 150},
                                                  {"y = y * c + d", 3000},
                                                  {"y = y * ci + di", 2500},
                                                  {"concat of slices", 100},
                                                  {"y = y + sum(x * i)", 300},
                                                  {"LSTM", 24},
                                                  {"y = y @ w", 20},
                                                  {"updates of small parameters", 80}};
  for (const models::LongProgram& program : models::long_programs()) {
    CAPTURE(program.name);
    const std::vector<Tensor> results = program.build(steps.at(program.name));
    const Bindings bindings = filled(results);
    const std::vector<Tensor> got = evaluate(results, bindings);
    std::vector<Tensor> expected;
    {
      DeviceScope scope("interpreter");
      expected = evaluate(results, bindings);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const std::vector<double> a = got[i].to_vector<double>(), b = expected[i].to_vector<double>();
      REQUIRE(a.size() == b.size());
      for (size_t k = 0; k < a.size(); ++k)
        CHECK(std::abs(a[k] - b[k]) <= 1e-4 * std::max(1.0, std::abs(b[k])));
    }
  }
}

TEST_CASE("long programs: chains of 100,000 operations are evaluated") {
  const Tensor x = parameter("x", tensor({1.0f, 2.0f, 3.0f}));
  Tensor scaled = x, turned = x.reshape({3, 1}), chosen = x;
  for (int i = 0; i < 50'000; ++i) scaled = scaled * 0.5 + 1.0;
  for (int i = 0; i < 100'000; ++i) turned = turned.transpose();
  for (int i = 0; i < 25'000; ++i) chosen = where(chosen > 2.5, chosen - 1.0, chosen + 1.0);
  CHECK(scaled.to_vector<float>() == std::vector<float>{2, 2, 2});
  CHECK(turned.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(chosen.to_vector<float>() == std::vector<float>{3, 2, 3});
  CHECK(grad(sum(scaled), {x})[0].to_vector<float>() == std::vector<float>{0, 0, 0});
}

TEST_CASE("long programs: what is stored for the length of a kernel says so") {
  Graph graph;
  GraphScope scope(graph);
  const std::vector<NodeRef> roots = nodes_of(models::long_programs()[0].build(500));
  const Schedule divided = schedule_program(simplify_program(roots));
  CHECK(divided.unfused.size() > 4);
  for (const UnfusedEdge& edge : divided.unfused) CHECK(edge.reason == UnfusedReason::Length);
  ScheduleOptions whole;
  whole.disabled = {"divide"};
  CHECK(schedule_program(simplify_program(roots), whole).kernels.size() == 1);
}

// More reductions inside each other, or of more sizes, than a kernel can tell apart.
TEST_CASE("long programs: many loops of different sizes and depths") {
  std::vector<Tensor> terms;
  for (int64_t i = 0; i < 300; ++i) terms.push_back(sum(arange(i + 1).cast(DType::F32)));
  Tensor total = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) total = total + terms[i];
  double expected = 0;
  for (int64_t i = 0; i < 300; ++i) expected += static_cast<double>(i * (i + 1) / 2);
  CHECK(std::abs(total.item<double>() / expected - 1) < 1e-5);

  Tensor row = ones({1, 20});
  const Tensor shift = parameter("shift", roll(eye(20), 1, 1));
  for (int i = 0; i < 20; ++i)
    row = matmul(row * (i == 0 ? arange(20).reshape({1, 20}).cast(DType::F32) : ones({1, 20})),
                 shift);
  std::vector<float> turned(20);
  for (size_t i = 0; i < 20; ++i) turned[i] = static_cast<float>(i);
  CHECK(row.to_vector<float>() == turned);
}

TEST_CASE("long programs: progress is told, and only while something compiles") {
  std::vector<CompileProgress> seen;
  on_compile_progress([&](const CompileProgress& progress) { seen.push_back(progress); });
  const Tensor x = parameter("x", tensor({1.0f, 2.0f}));
  const Tensor y = x * 1.2345 + sum(x * 5.4321) * 6.78;
  const std::vector<float> first = y.to_vector<float>();
  const std::vector<CompileProgress> once = seen;
  CHECK(y.to_vector<float>() == first);
  on_compile_progress({});
  CHECK(seen.size() == once.size());
  REQUIRE(once.size() >= 3);
  CHECK(once.front().stage == "schedule");
  CHECK(once.back().stage == "done");
  CHECK(std::ranges::any_of(
      once, [](const CompileProgress& each) { return each.stage == "lower" && each.total > 0; }));
  const size_t before = seen.size();
  (y * 2.5).to_vector<float>();
  CHECK(seen.size() == before);
}
