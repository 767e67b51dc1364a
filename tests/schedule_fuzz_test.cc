// Random programs through the scheduler, the kernels and the device, each pass and each
// transformation left out in turn, compared with the interpreter. What fails is made small and
// printed as text that can be kept in tests/regressions.
//
//   ANNEAL_FUZZ_GRAPHS=100000 ANNEAL_FUZZ_SEED=7 build/anneal_tests -tc="schedule fuzz:*"
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/pipeline.h"
#include "graph_runs.h"
#include "graph_shrink.h"
#include "ir/print.h"
#include "random_graph.h"
#include "requests_scope.h"
#include "runtime/webgpu/webgpu_device.h"

using namespace anneal;

namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// ./dev test --long has all of them.
uint64_t graphs(uint64_t most) {
  return number_from("ANNEAL_FUZZ_GRAPHS", std::getenv("ANNEAL_LONG") ? most : most / 4);
}
uint64_t first_seed() { return number_from("ANNEAL_FUZZ_SEED", 0); }

// A way to run a program, for the k-th of many: empty when all is well.
using Check = std::function<std::string(const GraphRuns& runs)>;

// Runs random programs in some ways each and makes the first few that fail small.
void fuzz(uint64_t count, const RandomGraphOptions& options,
          const std::function<std::vector<Check>(uint64_t seed)>& checks) {
  int failures = 0;
  for (uint64_t k = 0; k < graphs(count) && failures < 5; ++k) {
    const uint64_t seed = first_seed() + k;
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = random_graph(seed, options);
    const GraphRuns runs(roots);
    for (const Check& check : checks(seed)) {
      const std::string failure = check(runs);
      if (failure.empty()) continue;
      ++failures;
      const ShrunkGraph small = shrink_graph(
          roots, [&](std::span<const NodeRef> program) { return check(GraphRuns(program)); });
      FAIL_CHECK("seed " << seed << ": " << failure << "\nsmall: " << small.failure << "\n"
                         << print(small.roots));
      break;
    }
  }
}

// What a check says, and what was left out.
std::string with(const std::string& failure, const std::string& toggles) {
  return failure.empty() ? "" : fmt::format("{}: {}", toggles, failure);
}

}  // namespace

TEST_CASE("schedule fuzz: bodies of kernels compute the program, with every pass left out") {
  const std::vector<Toggle>& toggles = schedule_toggles();
  fuzz(2000, {.max_elements = 500}, [&](uint64_t seed) {
    std::vector<Check> checks;
    for (const Toggle& toggle : {toggles[0], toggles[1], toggles[seed % toggles.size()]})
      checks.push_back([toggle](const GraphRuns& runs) {
        return with(runs.check_bodies(toggle), toggle.text());
      });
    return checks;
  });
}

TEST_CASE("schedule fuzz: lowered programs compute the program, with everything left out") {
  const std::vector<Toggle>&schedules = schedule_toggles(), &lowers = lower_toggles();
  fuzz(600, {.max_elements = 500}, [&](uint64_t seed) {
    std::vector<Check> checks;
    const Toggle& schedule = schedules[(seed + seed / lowers.size()) % schedules.size()];
    for (const Toggle& lower : {lowers[0], lowers[seed % lowers.size()]})
      checks.push_back([schedule, lower](const GraphRuns& runs) {
        return with(runs.check_programs(schedule, lower), schedule.text() + "; " + lower.text());
      });
    return checks;
  });
}

TEST_CASE("schedule fuzz: machine code computes the program, with everything left out") {
  const std::vector<Toggle>&schedules = schedule_toggles(), &lowers = lower_toggles();
  fuzz(600, {}, [&](uint64_t seed) {
    std::vector<Check> checks;
    const Toggle& schedule = schedules[(seed + seed / lowers.size()) % schedules.size()];
    const Toggle& lower = lowers[seed % lowers.size()];
    checks.push_back([schedule, lower](const GraphRuns& runs) {
      return with(runs.check_code(schedule, lower), schedule.text() + "; " + lower.text());
    });
    return checks;
  });
}

// With the limits and tiles that ANNEAL_WEBGPU_LIMITS and ANNEAL_WEBGPU_TILES ask for; ctest runs
// it with the least limits and with the adapter's own.
TEST_CASE("schedule fuzz: a GPU computes the program") {
  constexpr uint64_t kGraphs = 1000;
  const std::unique_ptr<Device> device = make_webgpu_device();
  const std::vector<Toggle>& toggles = schedule_toggles();
  // Of passes that the device runs itself, too.
  const std::vector<std::string> names = names_to_disable();
  fuzz(kGraphs, {.f64 = false, .max_elements = 500}, [&](uint64_t seed) {
    const Toggle& toggle = toggles[seed % toggles.size()];
    const std::string& name = names[seed % names.size()];
    return std::vector<Check>{[&device, toggle, name](const GraphRuns& runs) {
      PassRequests requests;
      if (name.find('/') == std::string::npos) requests.disabled = {name};
      const RequestsScope scope(requests);
      return with(runs.check_on(*device, toggle), toggle.text() + ", everywhere " + name);
    }};
  });
  const webgpu::Limits limits = gpu_of(*device)->limits();
  MESSAGE(fmt::format("{} graphs, with {} storage buffers, {} MiB bindings, {} invocations",
                      graphs(kGraphs), limits.storage_buffers, limits.storage_binding_bytes >> 20,
                      limits.workgroup_invocations));
}
