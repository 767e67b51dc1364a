#include "schedule/limit.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/index.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

// What a fragment computes, as a graph: its nodes, and the leaves that it reads.
class Cut {
 public:
  explicit Cut(const Fragment& fragment) {
    for (NodeRef node : fragment.nodes) inside_[node] = 1;
    // What is stored in any case is an end, whoever else uses it.
    NodeMap<char> used;
    for (NodeRef node : fragment.nodes)
      for (NodeRef source : node->sources())
        if (node->op != Op::Contiguous && node->op != Op::Assign) used[source] = 1;
    for (NodeRef node : fragment.nodes)
      if (!used.contains(node) || node->op == Op::Contiguous) sinks_.push_back(node);
  }

  // The smallest value that takes at least one buffer away when it is stored, of equals the one
  // that takes most.
  NodeRef choose(const Fragment& fragment) {
    const size_t all = leaves(nullptr).size();
    NodeRef best = nullptr;
    double least = 0;
    size_t most = 0;
    for (NodeRef node : fragment.nodes) {
      const bool value = is_elementwise(node->op) || is_reduce(node->op);
      if (!value || std::ranges::count(sinks_, node) > 0) continue;
      const size_t without = leaves(node).size();
      if (without + 1 >= all) continue;
      const double size =
          static_cast<double>(bounds(simplify(element_count_expr(node->shape->dims()))).max) *
          static_cast<double>(byte_size(node->dtype));
      const size_t gain = all - without;
      if (best && (size > least || (size == least && gain <= most))) continue;
      best = node;
      least = size;
      most = gain;
    }
    return best;
  }

 private:
  // That are read when `stored` is there already.
  std::set<NodeRef> leaves(NodeRef stored) const {
    std::set<NodeRef> found;
    NodeMap<char> seen;
    std::vector<NodeRef> stack = sinks_;
    while (!stack.empty()) {
      NodeRef node = stack.back();
      stack.pop_back();
      if (!seen.insert(node, 1).second || node == stored) continue;
      if (!inside_.contains(node)) {
        if (node->op != Op::Const && node->dtype != DType::Index) found.insert(node);
        continue;
      }
      for (NodeRef source : node->sources()) stack.push_back(source);
    }
    return found;
  }

  NodeMap<char> inside_;
  std::vector<NodeRef> sinks_;
};

}  // namespace

std::vector<OverLimit> values_over_limit(const Rangified& program, std::span<const int> memory,
                                         int most_buffers) {
  std::vector<OverLimit> values;
  for (const Fragment& fragment : program.fragments) {
    std::set<int> bound;
    for (const std::vector<int>* buffers : {&fragment.reads, &fragment.writes})
      for (int buffer : *buffers)
        if (std::ranges::count(fragment.tiles, buffer) == 0)
          bound.insert(memory[static_cast<size_t>(buffer)]);
    if (static_cast<int>(bound.size()) <= most_buffers) continue;
    NodeRef value = Cut(fragment).choose(fragment);
    if (!value)
      fail(fmt::format("a kernel works on {} buffers, the device allows {}", bound.size(),
                       most_buffers),
           "store parts of the expression with contiguous() or realize()");
    if (std::ranges::count(values, value, &OverLimit::value) == 0)
      values.push_back({value, {static_cast<int>(bound.size()), most_buffers}});
  }
  return values;
}

std::vector<NodeRef> with_stored(std::span<const NodeRef> roots, std::span<const OverLimit> values,
                                 NodeMap<BufferLimit>& reasons) {
  NodeMap<NodeRef> images;
  NodeMap<BufferLimit> moved;
  for (NodeRef node : topological_order(roots)) {
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(images[source]);
    NodeRef image = with_sources(node, sources);
    if (const BufferLimit* before = reasons.find(node)) moved[image] = *before;
    const auto over = std::ranges::find(values, node, &OverLimit::value);
    if (over != values.end()) {
      image = make(Op::Contiguous, {image});
      moved[image] = over->limit;
    }
    images[node] = image;
  }
  std::vector<NodeRef> results;
  for (NodeRef root : roots) results.push_back(images[root]);
  reasons = std::move(moved);
  return results;
}

}  // namespace anneal
