#include "kernel/plan/axis_form.h"

#include <algorithm>

namespace anneal {

LinearForm AxisForm::slope(size_t axis) const {
  for (const Term& term : terms)
    if (term.axis == axis) return term.slope;
  return {};
}

AxisForm axis_form(NodeRef expression, FreeAxes& free) {
  AxisForm result;
  const LinearForm form = expand(expression);
  result.overflow = form.overflow;
  result.rest.constant = form.constant;
  for (const LinearForm::Term& term : form.terms) {
    NodeRef axis = nullptr;
    std::vector<NodeRef> others;
    bool linear = true;
    for (NodeRef factor : factors_of(term.base)) {
      if (free.of(factor).empty()) {
        others.push_back(factor);
      } else {
        linear &= axis == nullptr && free.number(factor) < free.count();
        axis = factor;
      }
    }
    if (!axis || !linear) {
      result.rest.add(form_of({term.factor, term.base}), 1);
      result.in_rest = result.in_rest | free.of(term.base);
      continue;
    }
    const size_t number = free.number(axis);
    auto at = std::lower_bound(result.terms.begin(), result.terms.end(), number,
                               [](const AxisForm::Term& a, size_t b) { return a.axis < b; });
    if (at == result.terms.end() || at->axis != number) at = result.terms.insert(at, {number, {}});
    const Monomial slope{term.factor, others.empty() ? nullptr : product_of(others)};
    at->slope.add(form_of(slope), 1);
  }
  return result;
}

}  // namespace anneal
