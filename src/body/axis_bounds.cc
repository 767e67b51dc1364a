#include "body/axis_bounds.h"

#include <optional>

#include "ir/index.h"

namespace anneal {
namespace {

constexpr int64_t kSmall = int64_t{1} << 30;  // sums of a few such numbers are exact in 32 bits

// Of small numbers, in whichever integers it is computed.
std::optional<LinearForm> line(NodeRef node) {
  if (node->dtype == DType::Index) {
    LinearForm form = linear_form(node);
    if (form.overflow) return std::nullopt;
    return form;
  }
  if (!is_int(node->dtype) || byte_size(node->dtype) < 4) return std::nullopt;
  if (node->is_const()) {
    LinearForm form;
    form.constant = node->scalar().as_int();
    return form;
  }
  switch (node->op) {
    case Op::Cast: return line(node->source(0));
    case Op::Neg: {
      std::optional<LinearForm> a = line(node->source(0));
      if (!a) return a;
      LinearForm form;
      form.add(*a, -1);
      return form;
    }
    case Op::Add: {
      std::optional<LinearForm> a = line(node->source(0));
      const std::optional<LinearForm> b = line(node->source(1));
      if (!a || !b) return std::nullopt;
      a->add(*b, 1);
      return a;
    }
    default: return std::nullopt;
  }
}

bool is_truth(NodeRef node, bool value) {
  return node->is_const() && is_bool(node->dtype) && (node->arg.bits != 0) == value;
}

}  // namespace

std::vector<AxisBound> bounds_in(NodeRef condition) {
  if (condition->op == Op::Where && is_truth(condition->source(1), true) &&
      is_truth(condition->source(2), false))
    return bounds_in(condition->source(0));
  if (condition->op == Op::And) {
    std::vector<AxisBound> both = bounds_in(condition->source(0));
    for (const AxisBound& bound : bounds_in(condition->source(1))) both.push_back(bound);
    return both;
  }
  if (condition->op != Op::Le && condition->op != Op::Lt) return {};
  std::optional<LinearForm> difference = line(condition->source(0));
  const std::optional<LinearForm> other = line(condition->source(1));
  if (!difference || !other) return {};
  difference->add(*other, -1);
  const std::vector<LinearForm::Term>& terms = difference->terms;
  const int64_t by = -difference->constant - (condition->op == Op::Lt ? 1 : 0);
  if (difference->overflow || terms.size() != 2 || by > kSmall || by < -kSmall) return {};
  for (const LinearForm::Term& term : terms)
    if (term.base->op != Op::Variable || term.base->arg.symbol->second > kSmall) return {};
  if (terms[0].factor == 1 && terms[1].factor == -1) return {{terms[0].base, terms[1].base, by}};
  if (terms[0].factor == -1 && terms[1].factor == 1) return {{terms[1].base, terms[0].base, by}};
  return {};
}

}  // namespace anneal
