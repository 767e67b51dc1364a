#include "runtime/inspect/node_count.h"

#include <algorithm>

#include "ir/graph.h"

namespace anneal {

size_t count_nodes(std::span<const NodeRef> roots) {
  const std::vector<NodeRef> order = topological_order(roots);
  return static_cast<size_t>(std::ranges::count_if(
      order, [](NodeRef node) { return !(node->is_const() && node->dtype == DType::Index); }));
}

}  // namespace anneal
