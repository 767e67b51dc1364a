#include "body/substitute.h"

#include "ir/build.h"
#include "ir/index.h"

namespace anneal {

NodeRef rebuilt(NodeRef node, std::span<const NodeRef> sources) {
  if (node->dtype == DType::Index && sources.size() == 2) switch (node->op) {
      case Op::Add: return index_add(sources[0], sources[1]);
      case Op::Mul: return index_mul(sources[0], sources[1]);
      case Op::FloorDiv: return index_floor_div(sources[0], sources[1]);
      case Op::Mod: return index_mod(sources[0], sources[1]);
      default: break;
    }
  return with_sources(node, sources);
}

std::vector<NodeRef> substitute(std::span<const NodeRef> roots, const NodeMap<NodeRef>& by) {
  NodeMap<NodeRef> images;
  std::vector<NodeRef> sources;
  for (NodeRef node : topological_order(roots)) {
    if (const NodeRef* replacement = by.find(node)) {
      images[node] = *replacement;
      continue;
    }
    sources.clear();
    bool changed = false;
    for (NodeRef source : node->sources()) {
      sources.push_back(*images.find(source));
      changed = changed || sources.back() != source;
    }
    images[node] = changed ? rebuilt(node, sources) : node;
  }
  std::vector<NodeRef> result;
  for (NodeRef root : roots) result.push_back(*images.find(root));
  return result;
}

}  // namespace anneal
