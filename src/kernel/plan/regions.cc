#include "kernel/plan/regions.h"

#include <algorithm>

#include "ir/post_order.h"
#include "symbolic/polynomial.h"

namespace anneal {
namespace {

// What is computed for these roots, up to reductions, which are regions of their own.
std::vector<NodeRef> nodes_under(std::span<const NodeRef> roots) {
  auto child = [](NodeRef node, size_t i) -> NodeRef {
    const bool leaf = is_reduce_over(node->op) || node->op == Op::Buffer || node->op == Op::Const;
    if (leaf || i >= node->source_count) return nullptr;
    return node->source(i);
  };
  return post_order(roots, child);
}

bool is_computed(NodeRef node) {
  if (node->dtype == DType::Index && node->op != Op::AsIndex) return false;
  return node->op != Op::Const && node->op != Op::Buffer && node->op != Op::Variable &&
         !is_reduce_over(node->op);
}

}  // namespace

std::vector<Region> regions_of(Analysis& analysis, const std::vector<std::vector<NodeRef>>& groups,
                               const AxisSet& common) {
  std::vector<Region> regions;
  for (NodeRef reduction : analysis.reductions()) {
    const AxisSet own = analysis.listed_set(reduction);
    const AxisSet domain = analysis.free(reduction) | own;
    auto alike = std::find_if(regions.begin(), regions.end(), [&](const Region& region) {
      return region.own == own && region.domain == domain &&
             analysis.rank(region.heads[0]) == analysis.rank(reduction);
    });
    if (alike == regions.end()) alike = regions.insert(regions.end(), {{}, true, own, domain, {}});
    alike->heads.push_back(reduction);
  }
  for (const std::vector<NodeRef>& group : groups) {
    const AxisSet listed = analysis.listed_set(group[0]);
    const AxisSet own = listed.without(common);
    regions.push_back({group, false, own.empty() ? listed : own, listed, {}});
  }
  for (Region& region : regions) {
    std::vector<NodeRef> roots;
    for (NodeRef head : region.heads) {
      roots.push_back(region.is_reduction ? head->source(0) : head);
    }
    for (NodeRef node : nodes_under(roots)) {
      const bool inside = !(analysis.free(node) & region.own).empty() || region.domain.empty();
      if (is_computed(node) && inside) region.nodes.push_back(node);
    }
  }
  return regions;
}

Stride stride_of(Analysis& analysis, NodeRef access, size_t axis) {
  // A condition alone that varies makes the access one of lanes, too.
  if (!analysis.free(access->source(1)).contains(axis))
    return analysis.free(access->source(2)).contains(axis) ? Stride::Other : Stride::None;
  const AxisForm& form = analysis.form(access->source(1));
  if (form.overflow || form.in_rest.contains(axis)) return Stride::Other;
  const LinearForm slope = form.slope(axis);
  if (!is_constant(slope)) return Stride::Other;
  return slope.constant == 1 ? Stride::Unit : slope.constant == 2 ? Stride::Two : Stride::Other;
}

double iterations(const Analysis& analysis, const AxisSet& axes) {
  double product = 1;
  for (size_t axis : axes.list()) product *= static_cast<double>(analysis.expected_size(axis));
  return product;
}

}  // namespace anneal
