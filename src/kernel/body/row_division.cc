#include "kernel/body/row_division.h"

#include <cmath>

#include "body/substitute.h"
#include "ir/build.h"
#include "kernel/plan/analysis.h"

namespace anneal {
namespace {

NodeRef number(double value) { return make_const(DType::F32, value); }

// (a * (1 / (b * s))) * s with a power of two s that keeps the reciprocal far from both ends of the
// range. The last product is exact unless the quotient itself is at an end.
NodeRef quotient(NodeRef a, NodeRef b) {
  constexpr double kSmall = 0x1p-100, kLarge = 0x1p100, kUp = 0x1p60, kDown = 0x1p-60;
  NodeRef size = make(Op::Abs, {b});
  NodeRef scale =
      make(Op::Where,
           {make(Op::Lt, {size, number(kSmall)}), number(kUp),
            make(Op::Where, {make(Op::Lt, {number(kLarge), size}), number(kDown), number(1)})});
  NodeRef reciprocal = make(Op::Div, {number(1), make(Op::Mul, {b, scale})});
  return make(Op::Mul, {make(Op::Mul, {a, reciprocal}), scale});
}

}  // namespace

KernelBody multiply_by_reciprocals(const KernelBody& body) {
  FreeAxes free(body);
  NodeMap<NodeRef> images;
  bool changed = false;
  std::vector<NodeRef> sources;
  for (NodeRef node : topological_order(body.stores)) {
    sources.clear();
    for (NodeRef source : node->sources()) sources.push_back(*images.find(source));
    const bool divides = node->op == Op::Div && node->dtype == DType::F32 &&
                         !node->source(0)->is_const() && !node->source(1)->is_const();
    const AxisSet& above = free.of(node);
    if (divides && free.of(node->source(1)) != above) {
      images[node] = quotient(sources[0], sources[1]);
      changed = true;
    } else {
      images[node] = with_sources(node, sources);
    }
  }
  if (!changed) return body;
  KernelBody result = body;
  for (NodeRef& store : result.stores) store = *images.find(store);
  return result;
}

}  // namespace anneal
