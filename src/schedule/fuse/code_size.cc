#include "schedule/fuse/code_size.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "body/match_axes.h"
#include "ir/node_map.h"
#include "schedule/cost.h"

namespace anneal {
namespace {

// Axes of different sizes or depths. As canonical.cc names them: reductions that are not inside
// each other share theirs.
size_t count_axes(const Fragment& fragment) {
  std::set<std::tuple<int, size_t, int64_t>> names;
  std::set<NodeRef> of_stores;
  for (const std::vector<NodeRef>& stores : fragment.phases) {
    NodeMap<int> height;
    for (NodeRef node : topological_order(stores)) {
      int inside = 0;
      for (NodeRef source : node->sources()) inside = std::max(inside, height[source]);
      height[node] = inside + (is_reduce_over(node->op) ? 1 : 0);
      if (!is_reduce_over(node->op)) continue;
      for (size_t i = 1; i < node->source_count; ++i)
        names.emplace(inside, i, node->source(i)->arg.symbol->second);
    }
    for (NodeRef store : stores)
      of_stores.insert(store_axes(store).begin(), store_axes(store).end());
  }
  return names.size() + of_stores.size();
}

}  // namespace

double code_size(NodeRef node) {
  const bool is_size = node->op == Op::Const && node->dtype == DType::Index;
  return is_size ? 0 : info(node->op).code;  // other constants are loaded from memory
}

double share_of_kernel(const Fragment& fragment, const Capabilities& capabilities) {
  double share =
      static_cast<double>(capabilities.most_operations) / std::max(1.0, fragment.operations);
  if (fragment.axes.size() > kMostAxes)
    share =
        std::min(share, static_cast<double>(kMostAxes) / static_cast<double>(count_axes(fragment)));
  return share;
}

}  // namespace anneal
