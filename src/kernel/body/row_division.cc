#include "kernel/body/row_division.h"

#include <cmath>

#include "body/substitute.h"
#include "ir/build.h"
#include "kernel/plan/analysis.h"
#include "rewrite/local_rules.h"

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

const LocalRules<FreeAxes> kRules{
    "reciprocals",
    {{"row-divisor", any_of({Op::Div}), [](NodeRef node, NodeRef image, FreeAxes& free) {
        const bool divides = node->dtype == DType::F32 && !node->source(0)->is_const() &&
                             !node->source(1)->is_const();
        if (!divides || free.of(node->source(1)) == free.of(node)) return unchanged;
        return quotient(image->source(0), image->source(1));
      }}}};

}  // namespace

std::vector<std::string_view> reciprocal_rules() { return kRules.rule_names(); }

KernelBody multiply_by_reciprocals(const KernelBody& body) {
  FreeAxes free(body);
  KernelBody result = body;
  result.stores = rewrite_once(body.stores, kRules, free);
  return result;
}

}  // namespace anneal
