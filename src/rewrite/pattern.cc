#include "rewrite/pattern.h"

namespace anneal {

Pattern::Pattern(Capture capture)
    : ops_(capture.constant ? OpSet{Op::Const} : OpSet{}),
      any_op_(!capture.constant),
      capture_(capture.slot) {}

Pattern::Pattern(double number) : ops_{Op::Const}, is_number_(true), number_(number) {}

Pattern::Pattern(OpSet ops, std::vector<Pattern> sources)
    : ops_(ops), sources_(std::move(sources)) {}

Pattern any_of(OpSet ops) { return Pattern(ops, {}); }

Pattern Pattern::as(Capture capture) const {
  Pattern named = *this;
  named.capture_ = capture.slot;
  return named;
}

Pattern Pattern::when(Predicate predicate) const {
  Pattern guarded = *this;
  guarded.predicate_ = predicate;
  return guarded;
}

std::vector<Pattern> Pattern::orders() const {
  if (sources_.empty()) return {*this};
  // Every combination of the orders of the sources ...
  std::vector<std::vector<Pattern>> combinations{{}};
  for (const Pattern& source : sources_) {
    std::vector<std::vector<Pattern>> longer;
    for (const std::vector<Pattern>& prefix : combinations)
      for (const Pattern& order : source.orders()) {
        longer.push_back(prefix);
        longer.back().push_back(order);
      }
    combinations = std::move(longer);
  }
  // ... and, if every op it can match commutes, each of them swapped.
  bool commutes = sources_.size() == 2;
  for (int i = 0; i < kOpCount; ++i)
    if (ops_.contains(static_cast<Op>(i)))
      commutes = commutes && info(static_cast<Op>(i)).commutative;
  std::vector<Pattern> result;
  for (std::vector<Pattern>& sources : combinations) {
    Pattern straight = *this;
    straight.sources_ = sources;
    result.push_back(straight);
    if (!commutes) continue;
    Pattern swapped = *this;
    swapped.sources_ = {sources[1], sources[0]};
    result.push_back(swapped);
  }
  return result;
}

bool Pattern::match(NodeRef node, Match& match) const {
  if (!any_op_ && !ops_.contains(node->op)) return false;
  if (is_number_ && !node->is_const_value(number_)) return false;
  if (match.parts_[captures::root.slot] == nullptr) match.parts_[captures::root.slot] = node;
  if (capture_ >= 0) {
    NodeRef& part = match.parts_[static_cast<size_t>(capture_)];
    if (part && part != node) return false;
    part = node;
  }
  // Sources before predicates: a predicate may be costly, the shape of the tree rarely fits.
  if (!sources_.empty()) {
    if (node->tensors().size() != sources_.size()) return false;
    for (size_t i = 0; i < sources_.size(); ++i)
      if (!sources_[i].match(node->source(i), match)) return false;
  }
  return !predicate_ || predicate_(node);
}

}  // namespace anneal
