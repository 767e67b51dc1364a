#include "runtime/distinct_bodies.h"

#include <map>

namespace anneal {

DistinctBodies distinct_bodies(const Schedule& schedule) {
  // Nodes are interned, so bodies that do the same are the same lists of nodes.
  using Nodes = std::vector<NodeRef>;
  DistinctBodies result;
  std::map<Nodes, int> numbers;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        Nodes nodes = part.body.stores;
        nodes.push_back(nullptr);
        nodes.insert(nodes.end(), part.body.buffers.begin(), part.body.buffers.end());
        nodes.push_back(nullptr);
        nodes.insert(nodes.end(), part.body.variables.begin(), part.body.variables.end());
        nodes.push_back(nullptr);
        nodes.insert(nodes.end(), part.body.tile_axes.begin(), part.body.tile_axes.end());
        nodes.push_back(nullptr);
        nodes.insert(nodes.end(), part.body.tiles.begin(), part.body.tiles.end());
        nodes.push_back(nullptr);
        for (const Axis& axis : part.body.axes)
          nodes.insert(nodes.end(), {axis.variable, axis.size});
        const int next = static_cast<int>(result.bodies.size());
        auto [entry, fresh] = numbers.emplace(std::move(nodes), next);
        if (fresh) result.bodies.push_back(&part.body);
        result.of_part.push_back(entry->second);
      }
  return result;
}

}  // namespace anneal
