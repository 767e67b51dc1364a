#include "kernel/body/cache_rows.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "kernel/plan/analysis.h"
#include "kernel/plan/cost.h"
#include "kernel/plan/regions.h"

namespace anneal {
namespace {

class RowKeeper {
 public:
  RowKeeper(const KernelBody& body, const Capabilities& capabilities)
      : body_(body), analysis_(body), capabilities_(capabilities) {}

  KernelBody run() {
    if (!find_rows()) return body_;
    // Nodes that depend on one inner axis, by what they are along an axis of no name.
    struct Seen {
      NodeRef axis, node;
    };
    std::map<Key, std::vector<Seen>> alike;
    std::vector<Key> order;  // of first sight: users after what they use
    for (NodeRef node : topological_order(body_.stores)) {
      NodeRef axis = inner_axis(node);
      if (!axis || !is_elementwise(node->op) || cost(node) < kWorthKeeping) continue;
      if (!is_contiguous(node, axis)) continue;
      NodeRef anonymous = along(node, axis, any_axis(body_.axis_of(axis).size));
      std::vector<Seen>& seen = alike[anonymous->key];
      if (seen.empty()) order.push_back(anonymous->key);
      seen.push_back({axis, node});
    }
    // The largest that is wanted along two axes.
    for (size_t i = order.size(); i-- > 0;) {
      const std::vector<Seen>& seen = alike[order[i]];
      if (seen.size() < 2) continue;
      NodeMap<NodeRef> images;
      NodeRef tile = make_tile(seen[0].node, seen[0].axis);
      for (const Seen& each : seen) images[each.node] = make(Op::Load, {tile, each.axis, always()});
      std::vector<NodeRef> stores = ordered(substitute(body_.stores, images));
      stores.insert(stores.begin(), tile_store(tile, seen[0].node, seen[0].axis));
      body_.stores = stores;
      break;
    }
    return body_;
  }

 private:
  static NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }

  // The axes that all stores have, and may run in any order; every store has another one or none.
  bool find_rows() {
    if (!body_.tiles.empty() || body_.stores.empty()) return false;
    // Out of a loop that never runs, memory that is not there would be read.
    for (size_t axis = 0; axis < analysis_.axis_count(); ++axis)
      if (analysis_.may_be_empty(axis)) return false;
    for (size_t i = 0; i < body_.stores.size(); ++i) {
      NodeRef store = body_.stores[i];
      std::span<const NodeRef> axes = Analysis::listed(store);
      if (store->op != Op::Store || store->arg.axis != static_cast<int64_t>(axes.size()))
        return false;
      // In place, a later store would read what an earlier one has changed.
      for (NodeRef node : topological_order({&store, 1}))
        if (node->op == Op::Load && analysis_.is_written(node->source(0))) return false;
      if (i == 0) rows_.assign(axes.begin(), axes.end());
      std::erase_if(rows_, [&](NodeRef axis) { return std::ranges::count(axes, axis) == 0; });
    }
    // A lone store runs over everything: its rows are what its reductions depend on.
    AxisSet needed;
    for (NodeRef reduction : analysis_.reductions()) needed = needed | analysis_.free(reduction);
    std::erase_if(rows_, [&](NodeRef axis) { return !needed.contains(analysis_.number(axis)); });
    if (rows_.empty()) return false;
    for (NodeRef row : rows_) row_set_.add(analysis_.number(row));
    return true;
  }

  // The only axis besides those of the rows that a value depends on.
  NodeRef inner_axis(NodeRef node) {
    const std::vector<size_t> others = analysis_.free(node).without(row_set_).list();
    if (others.size() != 1 || (analysis_.free(node) & row_set_).empty()) return nullptr;
    NodeRef size = analysis_.size(others[0]);
    if (!is_static(size) || static_value(size) * 8 > capabilities_.fast_memory_bytes)
      return nullptr;
    return body_.axes[others[0]].variable;
  }

  // Lanes run along the row: what is loaded for it must be neighbours.
  bool is_contiguous(NodeRef value, NodeRef axis) {
    const size_t number = analysis_.number(axis);
    for (NodeRef node : topological_order({&value, 1}))
      if (node->op == Op::Load && analysis_.free(node).contains(number) &&
          stride_of(analysis_, node, number) != Stride::Unit)
        return false;
    return true;
  }

  // Operations of a value along its inner axis, from what is loaded or depends on the row alone.
  int cost(NodeRef root) {
    int operations = 0;
    NodeMap<char> seen;
    std::vector<NodeRef> stack{root};
    while (!stack.empty() && operations <= kWorthKeeping) {
      NodeRef node = stack.back();
      stack.pop_back();
      if (analysis_.free(node).without(row_set_).empty() || !seen.insert(node, 1).second) continue;
      if (!is_elementwise(node->op) || node->dtype == DType::Index) continue;
      ++operations;
      stack.insert(stack.end(), node->sources().begin(), node->sources().end());
    }
    return operations;
  }

  static NodeRef along(NodeRef node, NodeRef axis, NodeRef name) {
    NodeMap<NodeRef> names;
    names[axis] = name;
    return substitute({&node, 1}, names)[0];
  }
  static NodeRef any_axis(NodeRef size) {
    return make_variable("row", 0, std::max<int64_t>(1, static_value(size)) - 1);
  }

  NodeRef make_tile(NodeRef value, NodeRef axis) {
    NodeRef size = body_.axis_of(axis).size;
    NodeRef tile =
        make_buffer("", static_cast<int64_t>(body_.buffers.size()), value->dtype, {&size, 1});
    body_.buffers.push_back(tile);
    body_.tiles.push_back(tile);
    body_.tile_axes = rows_;
    return tile;
  }

  NodeRef tile_store(NodeRef tile, NodeRef value, NodeRef axis) {
    NodeRef size = body_.axis_of(axis).size, own = any_axis(size);
    body_.axes.push_back({own, size});
    std::vector<NodeRef> sources{tile, own, always(), along(value, axis, own)};
    sources.insert(sources.end(), rows_.begin(), rows_.end());
    sources.push_back(own);
    return make(Op::Store, sources, Arg(static_cast<int64_t>(rows_.size() + 1)));
  }

  // The rows' axes first, as tiles want it.
  std::vector<NodeRef> ordered(std::vector<NodeRef> stores) const {
    for (NodeRef& store : stores) {
      std::vector<NodeRef> sources(store->sources().begin(), store->sources().begin() + 4);
      sources.insert(sources.end(), rows_.begin(), rows_.end());
      for (NodeRef axis : Analysis::listed(store))
        if (std::ranges::count(rows_, axis) == 0) sources.push_back(axis);
      store = make(store->op, sources, store->arg);
    }
    return stores;
  }

  KernelBody body_;
  Analysis analysis_;
  Capabilities capabilities_;
  std::vector<NodeRef> rows_;
  AxisSet row_set_;
};

}  // namespace

KernelBody cache_rows(const KernelBody& body, const Capabilities& capabilities) {
  return RowKeeper(body, capabilities).run();
}

}  // namespace anneal
