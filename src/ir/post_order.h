// Walks a graph so that children come before the nodes that have them, each once. Without
// recursion: graphs may be 100,000 deep.
#pragma once

#include <span>
#include <vector>

#include "ir/node_map.h"

namespace anneal {

// `child(node, i)` is the i-th child of a node, null after the last one.
template <typename Child>
std::vector<NodeRef> post_order(std::span<const NodeRef> roots, Child child) {
  struct Frame {
    NodeRef node;
    size_t next;  // the child to visit next
  };
  std::vector<NodeRef> order;
  std::vector<Frame> stack;
  NodeMap<char> seen;
  auto visit = [&](NodeRef node) {
    if (seen.insert(node, 1).second) stack.push_back({node, 0});
  };
  for (NodeRef root : roots) {
    visit(root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      NodeRef next = child(top.node, top.next++);
      if (next) {
        visit(next);
      } else {
        order.push_back(top.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace anneal
