// Fusion is decided over the whole training step: kernels hold forward and backward nodes together.
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "models/program.h"
#include "schedule/schedule.h"
#include "transform/phase.h"
#include "transform/simplify.h"

using namespace anneal;

TEST_CASE("kernel phases: a training step has kernels with forward and backward nodes") {
  Graph graph;
  GraphScope scope(graph);
  const models::Program program = models::mlp();
  std::vector<Tensor> all{program.loss};
  all.insert(all.end(), program.gradients.begin(), program.gradients.end());
  all.insert(all.end(), program.updates.begin(), program.updates.end());
  std::vector<NodeRef> built;
  for (const Tensor& tensor : all) built.push_back(tensor.node());
  const std::vector<NodeRef> roots = simplify_program(built);
  const auto backward = std::span(roots).subspan(1, program.gradients.size());
  const auto update = std::span(roots).subspan(1 + program.gradients.size());
  const NodeMap<Phase> phases_of = phases(std::span(roots).first(1), backward, update);
  // A schedule has its own copies of the nodes.
  std::map<Key, Phase> phase_of;
  for (NodeRef node : topological_order(roots)) phase_of[node->key] = *phases_of.find(node);
  // The gradients themselves are wanted by nobody.
  std::vector<NodeRef> wanted{roots[0]};
  wanted.insert(wanted.end(), update.begin(), update.end());
  const Schedule schedule = schedule_program(wanted);
  size_t both = 0;
  for (const Kernel& kernel : schedule.kernels) {
    bool forward = false, back = false;
    for (NodeRef node : kernel.nodes) {
      REQUIRE(phase_of.contains(node->key));
      const Phase phase = phase_of[node->key];
      // Constants and movement alone would not show that anything is computed together.
      if (!is_elementwise(node->op) && !is_reduce(node->op)) continue;
      forward |= phase == Phase::Forward;
      back |= phase == Phase::Backward;
    }
    both += forward && back;
  }
  CHECK(both > 0);
}
