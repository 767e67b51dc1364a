// The runtime of GPUs on one that is interpreted: schedules compute what they should without races
// between threads, and what runs again is replayed.
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "codegen/target_kernels.h"
#include "graph_runs.h"
#include "interpreted_gpu.h"
#include "random_graph.h"
#include "runtime/gpu/executable.h"
#include "target/target.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

Capabilities capabilities_named(std::string_view name) {
  return capabilities_of(*find_target(name), {.precision = MatmulPrecision::High});
}

std::string problem_on(InterpretedGpu& device, const Tensor& tensor) {
  return GraphRuns(std::vector<NodeRef>{tensor.node()}).check_on(device, {});
}

}  // namespace

TEST_CASE("gpu executable: schedules compute what they should, without races") {
  const Variable n("n", 1, 40);
  const Tensor x = input("x", {33, 48}), rows = input("rows", {n, 24});
  const std::vector<Tensor> tensors{softmax(x),
                                    matmul(x, transpose(x) * 2),
                                    sum(softmax(rows), {0}),
                                    transpose(x) + 1.0,
                                    layer_norm(rows),
                                    cumsum(x, 0)};
  for (const Target& target : named_targets()) {
    if (target.hardware.execution == Execution::Simd) continue;
    CAPTURE(target.name);
    InterpretedGpu device(capabilities_named(target.name));
    for (const Tensor& tensor : tensors) CHECK(problem_on(device, tensor) == "");
  }
}

TEST_CASE("gpu executable: random graphs have no races") {
  InterpretedGpu device(capabilities_named("webgpu-minimum"));
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Graph graph;
    GraphScope scope(graph);
    CHECK(GraphRuns(random_graph(seed, {.f64 = false, .max_elements = 300})).check_on(device, {}) ==
          "");
  }
}

TEST_CASE("gpu executable: what runs again is replayed, on another GPU too") {
  InterpretedGpu device(capabilities_named("webgpu-minimum"));
  const Schedule schedule = schedule_for(
      simplify_program(std::vector<NodeRef>{(input("x", {8}) * 3).node()}), device.capabilities());
  const std::unique_ptr<Executable> executable = device.compile(schedule, {});
  CHECK(device.counts().compiled == 1);  // for the memory that is expected
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<BufferRef> places;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    memory.push_back(device.allocate(32));
    places.push_back({memory.back()->handle(), 0});
  }
  REQUIRE(places.size() == 2);
  for (int run = 1; run <= 4; ++run) {
    executable->run({places, {}}, 0, 1);
    CHECK(device.counts().submitted == run);
    CHECK(device.counts().bound == 1);
    // The second run makes commands for itself and for the third, the third for the fourth, ...
    CHECK(device.counts().encoded == (run == 1 ? 1 : run + 1));
  }
  CHECK(device.counts().compiled == 1);

  std::swap(places[0], places[1]);  // other places are bound anew
  executable->run({places, {}}, 0, 1);
  CHECK(device.counts().bound == 2);
  places[1] = places[0];  // both the same memory: other code
  executable->run({places, {}}, 0, 1);
  CHECK(device.counts().compiled == 2);

  device.replace_backend();
  executable->run({places, {}}, 0, 1);
  CHECK(device.counts().compiled == 4);
  CHECK(device.counts().bound == 4);
}
