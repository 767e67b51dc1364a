#include "runtime/capture/size_checks.h"

#include <fmt/format.h>

#include "base/call_site.h"
#include "ir/index.h"
#include "symbolic/prove.h"

namespace anneal {

SizeChecks::SizeChecks(std::span<const NodeRef> roots, std::span<const NodeRef> variables) {
  std::vector<NodeRef> sides;
  if (variables.empty()) return;
  auto require = [&](NodeRef node, bool equal, NodeRef a, NodeRef b, std::string_view what) {
    if (equal ? prove_equal(a, b) : prove_less_equal(a, b)) return;
    rules_.push_back({equal, fmt::format("{}: {}", name(node->op), what),
                      node->origin ? "it comes from " + to_text(*node->origin) : ""});
    sides.push_back(a);
    sides.push_back(b);
  };
  NodeRef zero = index_const(0);
  for (NodeRef node : topological_order(roots)) {
    if (node->dtype == DType::Index) continue;
    for (NodeRef dim : node->shape->dims()) require(node, false, zero, dim, "a size is negative");
    if (node->op == Op::Reshape)
      require(node, true, element_count_expr(node->source(0)->shape->dims()),
              element_count_expr(node->shape->dims()), "sizes differ in elements");
    if (node->op != Op::Pad && node->op != Op::Shrink) continue;
    for (size_t axis = 0; axis < node->rank(); ++axis) {
      NodeRef low = node->tail()[2 * axis], high = node->tail()[2 * axis + 1];
      require(node, false, zero, low,
              node->op == Op::Pad ? "an axis is padded by less than 0" : "a cut begins before 0");
      if (node->op == Op::Pad) {
        require(node, false, zero, high, "an axis is padded by less than 0");
      } else {
        require(node, false, low, high, "a cut ends before it begins");
        require(node, false, high, node->source(0)->dim(axis), "a cut ends beyond its axis");
      }
    }
  }
  sides_ = IndexProgram(sides, variables);
}

void SizeChecks::check(std::span<const int64_t> sizes) const {
  const std::vector<int64_t> values = sides_.evaluate(sizes);
  for (size_t i = 0; i < rules_.size(); ++i) {
    const int64_t a = values[2 * i], b = values[2 * i + 1];
    if (rules_[i].equal ? a == b : a <= b) continue;
    fail(fmt::format("{}: {} and {}", rules_[i].what, a, b), rules_[i].hint);
  }
}

}  // namespace anneal
