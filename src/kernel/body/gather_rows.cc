#include "kernel/body/gather_rows.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "kernel/plan/axis_form.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

class RowStager {
 public:
  explicit RowStager(const KernelBody& body) : body_(body), free_(body.axes) {}

  KernelBody run() {
    // Out of a loop that never runs, memory that is not there would be read.
    for (const Axis& axis : body_.axes)
      if (bounds(axis.size).min < 1) return body_;
    const std::vector<NodeRef> order = topological_order(body_.stores);
    NodeMap<NodeRef> images;
    std::vector<NodeRef> first;  // stores of the tiles
    for (NodeRef node : order)
      if (node->op == Op::Load)
        if (NodeRef row = row_axis(node)) images[node] = staged(node, row, first);
    if (first.empty()) return body_;
    body_.stores = substitute(body_.stores, images);
    body_.stores.insert(body_.stores.begin(), first.begin(), first.end());
    return body_;
  }

 private:
  // The one axis besides those of the tiles that a load walks along, if rows are apart in memory.
  NodeRef row_axis(NodeRef load) {
    const bool in_tile = std::ranges::count(body_.tiles, load->source(0)) > 0;
    const bool written = std::ranges::any_of(
        body_.stores, [&](NodeRef store) { return store->source(0) == load->source(0); });
    if (in_tile || written || !is_always(load->source(2))) return nullptr;
    const size_t lanes = free_.number(body_.tile_axes.back());
    const AxisForm form = axis_form(load->source(1), free_);
    if (form.overflow || form.in_rest.contains(lanes)) return nullptr;
    const LinearForm slope = form.slope(lanes);
    const bool apart = !slope.terms.empty() || (slope.constant != 0 && slope.constant != 1);
    if (!apart) return nullptr;
    AxisSet others = free_.of(load->source(1));
    for (NodeRef axis : body_.tile_axes) others.remove(free_.number(axis));
    const std::vector<size_t> list = others.list();
    return list.size() == 1 ? free_.variable(list[0]) : nullptr;
  }

  NodeRef staged(NodeRef load, NodeRef row, std::vector<NodeRef>& first) {
    NodeRef size = body_.axis_of(row).size;
    const Symbol* symbol = row->arg.symbol;
    NodeRef own = make_variable(fmt::format("s{}", first.size()), 0, symbol->second);
    NodeMap<NodeRef> names;
    names[row] = own;
    NodeRef copied = substitute({&load, 1}, names)[0];
    // Loads of the same element along axes of other names share a tile.
    for (NodeRef store : first)
      if (same_element(store, load, row, size))
        return make(Op::Load, {store->source(0), row, load->source(2)});
    NodeRef tile =
        make_buffer("", static_cast<int64_t>(body_.buffers.size()), load->dtype, {&size, 1});
    body_.buffers.push_back(tile);
    body_.tiles.push_back(tile);
    body_.axes.push_back({own, size});
    std::vector<NodeRef> sources{tile, own, load->source(2), copied};
    sources.insert(sources.end(), body_.tile_axes.begin(), body_.tile_axes.end());
    sources.push_back(own);
    first.push_back(
        make(Op::Store, sources, Arg(static_cast<int64_t>(body_.tile_axes.size() + 1))));
    return make(Op::Load, {tile, row, load->source(2)});
  }

  bool same_element(NodeRef store, NodeRef load, NodeRef row, NodeRef size) {
    NodeRef own = store->sources().back();
    if (body_.axis_of(own).size != size) return false;
    NodeMap<NodeRef> names;
    names[row] = own;
    return substitute({&load, 1}, names)[0] == store->source(3);
  }

  KernelBody body_;
  FreeAxes free_;
};

}  // namespace

KernelBody gather_rows(const KernelBody& body) {
  return body.tiles.empty() ? body : RowStager(body).run();
}

}  // namespace anneal
