#include "kernel/body/hoist_prologue.h"

#include <algorithm>

#include <fmt/format.h>

#include "body/substitute.h"
#include "ir/build.h"
#include "kernel/plan/axis_form.h"
#include "kernel/plan/cost.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

class FactorStager {
 public:
  explicit FactorStager(const KernelBody& body) : body_(body), free_(body) {
    for (NodeRef axis : body.tile_axes) rows_.add(free_.number(axis));
  }

  KernelBody run() {
    std::vector<NodeRef> stores;
    for (NodeRef store : body_.stores) {
      NodeMap<NodeRef> images;
      for (NodeRef node : topological_order({&store, 1}))
        if (node->op == Op::SumOver && node->source_count == 2) stage(node, stores, images);
      stores.push_back(images.size() == 0 ? store : substitute({&store, 1}, images)[0]);
    }
    body_.stores = std::move(stores);
    return std::move(body_);
  }

 private:
  void stage(NodeRef sum, std::vector<NodeRef>& stores, NodeMap<NodeRef>& images) {
    NodeRef axis = sum->source(1);
    if (bounds(body_.axis_of(axis).size).min < 1) return;
    AxisSet along = rows_;
    along.add(free_.number(axis));
    if (along.contains(free_.of(sum))) return;  // no columns
    std::vector<NodeRef> factors{sum->source(0)};
    while (!factors.empty()) {
      NodeRef factor = factors.back();
      factors.pop_back();
      const AxisSet free = free_.of(factor);
      if (along.contains(free) && free.contains(free_.number(axis)) && takes_long(factor)) {
        if (!images.contains(factor)) images[factor] = staged(factor, axis, stores);
      } else if (factor->op == Op::Mul || factor->op == Op::Div) {
        for (NodeRef source : factor->sources()) factors.push_back(source);
      }
    }
  }

  static bool takes_long(NodeRef factor) {
    size_t steps = 0;
    for (NodeRef node : topological_order({&factor, 1})) {
      if (is_libm_function(node->op) || node->op == Op::Threefry) return true;
      steps += is_elementwise(node->op) && node->dtype != DType::Index ? 1 : 0;
    }
    return steps > kCheapToRepeat;
  }

  NodeRef staged(NodeRef factor, NodeRef axis, std::vector<NodeRef>& stores) {
    NodeRef size = body_.axis_of(axis).size;
    NodeRef own = make_variable(fmt::format("f{}", body_.tiles.size()), 0, bounds(axis).max);
    NodeRef tile =
        make_buffer("", static_cast<int64_t>(body_.buffers.size()), factor->dtype, {&size, 1});
    body_.buffers.push_back(tile);
    body_.tiles.push_back(tile);
    body_.axes.push_back({own, size});
    NodeMap<NodeRef> names;
    names[axis] = own;
    NodeRef always = make_const(Scalar::of_int(DType::Bool, 1));
    std::vector<NodeRef> sources{tile, own, always, substitute({&factor, 1}, names)[0]};
    sources.insert(sources.end(), body_.tile_axes.begin(), body_.tile_axes.end());
    sources.push_back(own);
    const auto axes = static_cast<int64_t>(body_.tile_axes.size() + 1);
    stores.push_back(make(Op::Store, sources, Arg(axes)));
    return make(Op::Load, {tile, axis, always});
  }

  KernelBody body_;
  FreeAxes free_;
  AxisSet rows_;
};

}  // namespace

KernelBody hoist_prologues(const KernelBody& body) {
  return body.tiles.empty() ? body : FactorStager(body).run();
}

}  // namespace anneal
