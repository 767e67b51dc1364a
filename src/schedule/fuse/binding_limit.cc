#include "schedule/fuse/binding_limit.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/post_order.h"
#include "rewrite/local_rules.h"
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

  // Values to store so that at least `excess` buffers fewer are read, as far as there are any.
  std::vector<NodeRef> choose(const Fragment& fragment, int excess, int most_buffers) {
    std::vector<NodeRef> chosen;
    while (excess > 0) {
      const Choice best = choose_one(fragment, static_cast<size_t>(most_buffers));
      if (!best.value) break;
      chosen.push_back(best.value);
      stored_[best.value] = 1;
      excess -= static_cast<int>(best.gain);
    }
    return chosen;
  }

 private:
  struct Choice {
    NodeRef value = nullptr;
    double bytes = 0;
    size_t gain = 0;    // buffers
    bool fits = false;  // is a kernel within the limit by itself
    // One that does not fit is cut again in the next round, and leaves little to this kernel.
    bool better_than(const Choice& other) const {
      if (!other.value || bytes != other.bytes) return !other.value || bytes < other.bytes;
      return fits != other.fits ? fits : gain > other.gain;
    }
  };

  // The smallest value that takes at least one buffer away when it is stored, of equals the one
  // that takes most.
  Choice choose_one(const Fragment& fragment, size_t most_buffers) {
    const NodeMap<size_t> only_for = leaves_only_for();
    Choice best;
    for (NodeRef node : fragment.nodes) {
      const bool value = is_elementwise(node->op) || is_reduce(node->op);
      if (!value || stored_.contains(node) || std::ranges::count(sinks_, node) > 0) continue;
      const size_t* saved = only_for.find(node);
      if (!saved || *saved <= 1) continue;
      const double bytes =
          static_cast<double>(bounds(simplify(element_count_expr(node->shape->dims()))).max) *
          static_cast<double>(byte_size(node->dtype));
      const Choice choice{node, bytes, *saved - 1, fits(node, most_buffers)};
      if (choice.better_than(best)) best = choice;
    }
    return best;
  }

  bool is_leaf(NodeRef node) const { return !inside_.contains(node) || stored_.contains(node); }
  static bool is_read(NodeRef leaf) { return leaf->op != Op::Const && leaf->dtype != DType::Index; }

  // Whether a kernel may have all it reads; itself is the buffer that it writes.
  bool fits(NodeRef value, size_t most_buffers) const {
    size_t read = 0;
    NodeMap<char> seen;
    std::vector<NodeRef> stack(value->sources().begin(), value->sources().end());
    while (!stack.empty() && read < most_buffers) {
      NodeRef node = stack.back();
      stack.pop_back();
      if (!seen.insert(node, 1).second) continue;
      if (is_leaf(node))
        read += is_read(node) ? 1 : 0;
      else
        stack.insert(stack.end(), node->sources().begin(), node->sources().end());
    }
    return read < most_buffers;
  }

  // By value: how many leaves are read for nothing but it. Every way from a sink to a node goes
  // through the node's dominator; the dominators of a node are one behind the other.
  NodeMap<size_t> leaves_only_for() const {
    const std::vector<NodeRef> order = post_order(sinks_, [&](NodeRef node, size_t i) -> NodeRef {
      return is_leaf(node) || i >= node->sources().size() ? nullptr : node->source(i);
    });
    NodeMap<NodeRef> dominator(order.size());
    NodeMap<int> depth(order.size());
    for (NodeRef sink : sinks_) dominator[sink] = nullptr;
    auto depth_of = [&](NodeRef node) { return node ? depth[node] : 0; };
    auto common_dominator = [&](NodeRef a, NodeRef b) {
      while (a != b) {
        NodeRef& inner = depth_of(a) >= depth_of(b) ? a : b;
        inner = dominator[inner];
      }
      return a;
    };
    for (size_t i = order.size(); i-- > 0;) {
      NodeRef node = order[i];
      depth[node] = depth_of(dominator[node]) + 1;
      if (is_leaf(node)) continue;
      for (NodeRef source : node->sources()) {
        const auto [known, is_first] = dominator.insert(source, node);
        if (!is_first) dominator[source] = common_dominator(*known, node);
      }
    }
    NodeMap<size_t> count(order.size());
    for (NodeRef node : order) {
      if (is_leaf(node) && is_read(node)) ++count[node];
      if (NodeRef through = dominator[node]) count[through] += count[node];
    }
    return count;
  }

  NodeMap<char> inside_, stored_;
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
    const int excess = static_cast<int>(bound.size()) - most_buffers;
    const std::vector<NodeRef> chosen = Cut(fragment).choose(fragment, excess, most_buffers);
    if (chosen.empty())
      fail(fmt::format("a kernel works on {} buffers, the device allows {}", bound.size(),
                       most_buffers),
           "store parts of the expression with contiguous() or realize()");
    for (NodeRef value : chosen)
      if (std::ranges::count(values, value, &OverLimit::value) == 0)
        values.push_back(
            {value, UnfusedReason::Limit, {static_cast<int>(bound.size()), most_buffers}});
  }
  return values;
}

namespace {

struct Stored {
  const NodeMap<OverLimit>& before;  // stored for a limit in an earlier round
  NodeMap<OverLimit> wanted = NodeMap<OverLimit>(), now = NodeMap<OverLimit>();
};

const LocalRules<Stored> kStoreRules{"limits",
                                     {
                                         {"store-value", captures::x,
                                          [](NodeRef node, NodeRef image, Stored& stored) {
                                            const OverLimit* over = stored.wanted.find(node);
                                            if (const OverLimit* before = stored.before.find(node))
                                              stored.now[image] = *before;
                                            if (!over) return unchanged;
                                            NodeRef result = make(Op::Contiguous, {image});
                                            stored.now[result] = *over;
                                            return result;
                                          }},
                                     },
                                     true};

}  // namespace

std::vector<NodeRef> with_stored(std::span<const NodeRef> roots, std::span<const OverLimit> values,
                                 NodeMap<OverLimit>& reasons) {
  Stored stored{reasons};
  for (const OverLimit& over : values) stored.wanted[over.value] = over;
  std::vector<NodeRef> results = rewrite_once(roots, kStoreRules, stored);
  reasons = std::move(stored.now);
  return results;
}

}  // namespace anneal
