#include "runtime/capture/assignments.h"

#include <unordered_map>

#include <fmt/format.h>

#include "base/call_site.h"

namespace anneal {

std::vector<NodeRef> assignments(std::span<const NodeRef> roots) {
  std::vector<NodeRef> found;
  for (NodeRef node : topological_order(roots))
    if (node->op == Op::Assign) found.push_back(node);
  std::unordered_map<NodeRef, NodeRef> last;
  for (NodeRef assign : found) last[assign->source(0)] = assign;
  std::erase_if(found, [&](NodeRef assign) { return last[assign->source(0)] != assign; });
  return found;
}

void check_targets(std::span<const NodeRef> assigns) {
  for (NodeRef assign : assigns)
    if (!current_graph().stored(assign->source(0)))
      fail(fmt::format("\"{}\" has no memory to assign to", assign->source(0)->arg.symbol->text()),
           "make it with parameter(name, initial) instead of input()");
}

}  // namespace anneal
