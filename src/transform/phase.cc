#include "transform/phase.h"

#include "ir/graph.h"

namespace anneal {

std::string_view name(Phase phase) {
  constexpr std::string_view kNames[] = {"forward", "backward", "update"};
  return kNames[static_cast<size_t>(phase)];
}

NodeMap<Phase> phases(std::span<const NodeRef> forward, std::span<const NodeRef> backward,
                      std::span<const NodeRef> update) {
  NodeMap<Phase> result;
  auto claim = [&](std::span<const NodeRef> roots, Phase phase) {
    for (NodeRef node : topological_order(roots))
      result.insert(node, phase);  // the first one stays
  };
  claim(forward, Phase::Forward);
  claim(backward, Phase::Backward);
  claim(update, Phase::Update);
  return result;
}

}  // namespace anneal
