#include "kernel/plan/axis_form.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <anneal/error.h>

#include "ir/post_order.h"

namespace anneal {

std::vector<size_t> AxisSet::list() const {
  std::vector<size_t> axes;
  for (size_t i = 0; i < words_.size(); ++i)
    for (uint64_t word = words_[i]; word != 0; word &= word - 1)
      axes.push_back(i * 64 + static_cast<size_t>(std::countr_zero(word)));
  return axes;
}

FreeAxes::FreeAxes(std::span<const Axis> axes) {
  if (axes.size() > AxisSet::kMost)
    throw InternalError(
        fmt::format("a kernel has {} axes, at most {}", axes.size(), AxisSet::kMost));
  for (const Axis& axis : axes) {
    numbers_[axis.variable] = variables_.size();
    variables_.push_back(axis.variable);
  }
}

FreeAxes::FreeAxes(const KernelBody& body) : FreeAxes(body.axes) {
  tiles_ = body.tiles;
  for (NodeRef axis : body.tile_axes) tile_axes_.add(number(axis));
}

size_t FreeAxes::number(NodeRef variable) const {
  const size_t* known = numbers_.find(variable);
  return known ? *known : count();
}

AxisSet FreeAxes::of(NodeRef node) {
  if (const AxisSet* known = free_.find(node)) return *known;
  auto child = [&](NodeRef parent, size_t i) -> NodeRef {
    if (free_.contains(parent) || i >= parent->source_count) return nullptr;
    return parent->source(i);
  };
  for (NodeRef part : post_order(std::span(&node, 1), child)) {
    if (free_.contains(part)) continue;
    AxisSet axes;
    if (number(part) < count()) axes.add(number(part));
    for (NodeRef source : part->sources()) axes = axes | *free_.find(source);
    if (part->op == Op::Load && std::ranges::count(tiles_, part->source(0)))
      axes = axes | tile_axes_;
    if (is_reduce_over(part->op))
      for (NodeRef bound : part->sources().subspan(1)) axes.remove(number(bound));
    free_[part] = axes;
  }
  return *free_.find(node);
}

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
