// Each way to make a program smaller is one function that offers candidates; whatever still fails
// is taken, until none does. Must not know what failing means.
#include "graph_shrink.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "value_info.h"

namespace anneal {
namespace {

using Roots = std::vector<NodeRef>;
using Clock = std::chrono::steady_clock;

// A node over new sources; null where there is none, and then the program has none either.
using Remake = std::function<NodeRef(NodeRef node, std::span<const NodeRef> sources)>;

NodeRef remade(NodeRef node, std::span<const NodeRef> sources) {
  std::string error;
  return current_graph().try_make(node->op, node->dtype, sources, node->arg, &error);
}

// The program with every node made anew; empty where that fails.
Roots rebuilt(std::span<const NodeRef> roots, const Remake& remake) {
  NodeMap<NodeRef> images;
  for (NodeRef node : topological_order(roots)) {
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(*images.find(source));
    NodeRef image = remake(node, sources);
    if (!image) return {};
    images[node] = image;
  }
  Roots results;
  for (NodeRef root : roots)
    if (NodeRef image = *images.find(root); std::ranges::find(results, image) == results.end())
      results.push_back(image);
  return results;
}

Roots with_replacement(std::span<const NodeRef> roots, NodeRef from, NodeRef to) {
  return rebuilt(roots, [&](NodeRef node, std::span<const NodeRef> sources) {
    return node == from ? to : remade(node, sources);
  });
}

class Shrinker {
 public:
  Shrinker(std::span<const NodeRef> roots, const GraphFailure& failure, double seconds)
      : failure_(failure),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {
    best_.roots.assign(roots.begin(), roots.end());
    best_.failure = failure(roots);
    tame_ = is_tame(roots);
  }

  ShrunkGraph run() {
    for (bool better = true; better && !is_late();) {
      better = false;
      for (auto way :
           {&Shrinker::drop_roots, &Shrinker::cut_above, &Shrinker::replace_by_source,
            &Shrinker::replace_by_buffer, &Shrinker::shrink_sizes, &Shrinker::plainer_dtypes})
        better |= (this->*way)();
    }
    return best_;
  }

 private:
  bool is_late() const { return Clock::now() > end_; }

  bool is_tame(std::span<const NodeRef> roots) {
    return std::ranges::all_of(roots, [&](NodeRef root) { return infos_[root].tame; });
  }

  bool accept(const Roots& candidate) {
    if (candidate.empty() || candidate == best_.roots || is_late()) return false;
    if (tame_ && !is_tame(candidate)) return false;
    ++best_.tries;
    std::string failure = failure_(candidate);
    if (failure.empty()) return false;
    best_.roots = candidate;
    best_.failure = std::move(failure);
    return true;
  }

  std::vector<NodeRef> tensors() const {
    std::vector<NodeRef> nodes;
    for (NodeRef node : topological_order(best_.roots))
      if (node->dtype != DType::Index) nodes.push_back(node);
    return nodes;
  }

  // ---- ways to a smaller program; true when one was found

  bool drop_roots() {
    bool better = false;
    for (NodeRef root : Roots(best_.roots))
      if (best_.roots.size() > 1) better |= accept({root});
    for (size_t i = 0; i < best_.roots.size() && best_.roots.size() > 1;) {
      Roots fewer = best_.roots;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (accept(fewer))
        better = true;
      else
        ++i;
    }
    return better;
  }

  // One of the inner nodes as the only root: the first that fails holds the mistake.
  bool cut_above() {
    for (NodeRef node : tensors())
      if (!node->tensors().empty() && accept({node})) return true;
    return false;
  }

  bool replace_by_source() {
    bool better = false;
    std::vector<NodeRef> nodes = tensors();
    std::ranges::reverse(nodes);
    for (NodeRef node : nodes)
      for (NodeRef source : node->tensors()) {
        if (node->op == Op::Assign || source->dtype != node->dtype) continue;
        if (source->shape == node->shape && accept(with_replacement(best_.roots, node, source))) {
          better = true;
          break;
        }
      }
    return better;
  }

  Grid grid_like(NodeRef node) {
    const ValueInfo info = infos_[node];
    auto within = [](double value) { return std::clamp(value, -1000.0, 1000.0); };
    if (!is_float(node->dtype))
      return {.low = std::llround(within(info.low)), .high = std::llround(within(info.high))};
    const double low = std::max(info.low, -4.0), high = std::min(info.high, 4.0);
    int bits = 6;
    if (info.exact) bits = std::clamp(-info.step, 0, 6);
    while (bits > -1 && !holds(node->dtype, -bits, std::max(std::fabs(low), std::fabs(high))))
      --bits;
    const double steps = std::exp2(bits);
    Grid grid{.low = static_cast<int64_t>(std::ceil(low * steps)),
              .high = static_cast<int64_t>(std::floor(high * steps)),
              .denominator = std::max<int64_t>(1, static_cast<int64_t>(steps))};
    grid.high = std::max(grid.low, grid.high);
    return grid;
  }

  bool replace_by_buffer() {
    bool better = false;
    std::vector<NodeRef> nodes = tensors();
    std::ranges::reverse(nodes);  // near the roots first: what is below goes with it
    for (NodeRef node : nodes) {
      if (node->op == Op::Buffer || node->op == Op::Assign) continue;
      const int64_t slot = next_slot();
      NodeRef buffer = make_buffer(buffer_name(fmt::format("s{}", slot), grid_like(node)), slot,
                                   node->dtype, node->shape->dims());
      if (accept(with_replacement(best_.roots, node, buffer))) better = true;
    }
    return better;
  }

  int64_t next_slot() const {
    int64_t next = 0;
    for (NodeRef node : topological_order(best_.roots))
      if (node->op == Op::Buffer) next = std::max(next, node->arg.symbol->first + 1);
    return next;
  }

  // A number that is a size somewhere, everywhere.
  Roots with_size(int64_t from, int64_t to) {
    return rebuilt(best_.roots, [&](NodeRef node, std::span<const NodeRef> sources) {
      if (node->dtype == DType::Index && node->is_const())
        return static_value(node) == from ? index_const(to) : node;
      return remade(node, sources);
    });
  }
  Roots with_variable(NodeRef variable, NodeRef value) {
    return rebuilt(best_.roots, [&](NodeRef node, std::span<const NodeRef> sources) -> NodeRef {
      if (node == variable) return value;
      if (node->dtype != DType::Index || node->source_count != 2) return remade(node, sources);
      switch (node->op) {  // in normal form
        case Op::Add: return index_add(sources[0], sources[1]);
        case Op::Mul: return index_mul(sources[0], sources[1]);
        case Op::FloorDiv: return index_floor_div(sources[0], sources[1]);
        case Op::Mod: return index_mod(sources[0], sources[1]);
        default: return remade(node, sources);
      }
    });
  }

  bool shrink_sizes() {
    bool better = false;
    std::vector<int64_t> sizes;
    for (NodeRef node : topological_order(best_.roots)) {
      if (node->op == Op::Variable) {
        const int64_t low = node->arg.symbol->first, high = node->arg.symbol->second;
        for (int64_t value : {low, low + (high - low) / 2, high})
          if (accept(with_variable(node, index_const(value)))) return true;
        if (high > low + 2 &&
            accept(with_variable(node, make_variable(node->arg.symbol->text(), low, low + 2))))
          return true;
      }
      if (node->dtype == DType::Index || !node->shape) continue;
      for (NodeRef dim : node->shape->dims())
        if (is_static(dim) && std::ranges::find(sizes, static_value(dim)) == sizes.end())
          sizes.push_back(static_value(dim));
    }
    for (int64_t size : sizes)
      for (int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{3}, size / 2, size - 1})
        if (smaller < size && smaller > 0 && accept(with_size(size, smaller))) {
          better = true;
          break;
        }
    return better;
  }

  bool plainer_dtypes() {
    bool better = false;
    for (DType from : kAllDTypes) {
      const DType to = is_float(from) ? DType::F32 : DType::I32;
      if (from == to || from == DType::Index || is_bool(from)) continue;
      better |= accept(
          rebuilt(best_.roots, [&](NodeRef node, std::span<const NodeRef> sources) -> NodeRef {
            if (node->dtype != from) return remade(node, sources);
            if (node->is_const()) return make_const(to, node->scalar().as_double(), sources);
            if (node->op == Op::Cast && sources[0]->dtype == to) return sources[0];
            std::string error;
            return current_graph().try_make(node->op, to, sources, node->arg, &error);
          }));
    }
    return better;
  }

  const GraphFailure& failure_;
  Clock::time_point end_;
  ShrunkGraph best_;
  ValueInfos infos_;
  bool tame_ = false;
};

}  // namespace

ShrunkGraph shrink_graph(std::span<const NodeRef> roots, const GraphFailure& failure,
                         double seconds) {
  return Shrinker(roots, failure, seconds).run();
}

}  // namespace anneal
