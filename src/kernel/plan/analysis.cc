#include "kernel/plan/analysis.h"

#include <algorithm>
#include <numeric>

#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Plans for symbolic sizes are made for the middle of what they can be, within reason.
int64_t expectation(NodeRef size) {
  if (is_static(size)) return static_value(size);
  constexpr int64_t kUsual = 256;
  const Interval range = bounds(size);
  return std::clamp(kUsual, std::max<int64_t>(1, range.min), std::max<int64_t>(1, range.max));
}

}  // namespace

Analysis::Analysis(const KernelBody& body)
    : body_(body), free_(body_), written_(body.buffers.size()) {
  for (const Axis& axis : body_.axes) expected_sizes_.push_back(expectation(axis.size));
  for (size_t i = 0; i < body_.buffers.size(); ++i) buffer_numbers_[body_.buffers[i]] = i;
  for (NodeRef store : body_.stores) written_[buffer_number(store->source(0))] = true;
  for (NodeRef node : topological_order(body_.stores)) {
    int rank = 0;
    for (NodeRef source : node->sources()) rank = std::max(rank, *ranks_.find(source));
    if (is_reduce_over(node->op)) {
      reductions_.push_back(node);
      ++rank;
    }
    ranks_[node] = rank;
  }
}

bool Analysis::is_tile(NodeRef buffer) const { return std::ranges::count(body_.tiles, buffer) > 0; }

bool Analysis::may_be_empty(size_t axis) const { return bounds(size(axis)).min < 1; }

int64_t Analysis::size_multiple(size_t axis) const {
  const LinearForm form = expand(size(axis));
  if (form.overflow) return 1;
  int64_t common = form.constant;
  for (const LinearForm::Term& term : form.terms) common = std::gcd(common, term.factor);
  return std::max<int64_t>(1, common);
}

const AxisForm& Analysis::form(NodeRef index) {
  auto known = forms_.find(index);
  if (known == forms_.end()) known = forms_.emplace(index, axis_form(index, free_)).first;
  return known->second;
}

std::span<const NodeRef> Analysis::listed(NodeRef node) {
  return node->sources().subspan(info(node->op).sources);
}

AxisSet Analysis::listed_set(NodeRef node) const {
  AxisSet axes;
  for (NodeRef axis : listed(node)) axes.add(number(axis));
  return axes;
}

}  // namespace anneal
