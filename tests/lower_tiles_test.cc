// Values that live in tiles: attention without its scores in memory.
#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "lower_check.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

TEST_CASE("lower: attention in tiles, forward and backward") {
  for (const int64_t tokens : {32, 37}) {
    CAPTURE(tokens);
    Graph graph;
    GraphScope scope(graph);
    Tensor q = input("q", {2, tokens, 4}), k = input("k", {2, tokens, 4});
    Tensor v = input("v", {2, tokens, 4}), weight = input("weight", {2, tokens, 4});
    Tensor mixed = matmul(softmax(matmul(q, transpose(k)) * 0.5), v);
    std::vector<Tensor> results = grad(sum(mixed * weight), {q, k, v});
    results.push_back(mixed);
    std::vector<NodeRef> roots;
    for (const Tensor& result : results) roots.push_back(result.node());
    ScheduleOptions options;
    options.capabilities.tiles = true;
    options.threshold_scale = 1 << 20;
    const Schedule schedule = schedule_program(simplify_program(roots), options);
    GraphScope inner(*schedule.graph);
    size_t tiled = 0;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) {
          tiled += part.body.tiles.empty() ? 0 : 1;
          check_lowering(part.body);
        }
    CHECK(tiled > 0);
  }
}
