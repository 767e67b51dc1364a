#include "schedule/fuse/value_uses.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "schedule/cost.h"
#include "symbolic/bounds.h"
#include "symbolic/index_map.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

// Uses that are compared one by one.
constexpr size_t kComparedUses = 16;

}  // namespace

ValueUses::ValueUses(std::span<const NodeRef> roots) : order_(topological_order(roots)) {
  for (NodeRef node : order_) {
    for (NodeRef source : node->tensors()) ++users_[source];
    if (node->dtype == DType::Index) continue;
    index_.insert(node, static_cast<int>(states_.size()));
    states_.emplace_back();
  }
}

ValueUses::~ValueUses() {  // scopes end in the order opposite to that of their beginning
  while (!limits_.empty()) limits_.pop_back();
}

int ValueUses::buffer_of(NodeRef node) {
  ValueState& s = state(node);
  if (s.buffer < 0) {
    NodeRef elements = simplify(element_count_expr(node->shape->dims()));
    s.buffer = static_cast<int>(result_.buffers.size());
    result_.buffers.push_back({.dtype = node->dtype, .elements = elements});
    if (node->op == Op::Buffer) buffer(s.buffer).external = node;
  }
  return s.buffer;
}

NodeRef ValueUses::load(NodeRef node, const Shape* coordinates, NodeRef valid) {
  const int number = buffer_of(node);
  NodeRef position = position_of(node, coordinates);
  return make(Op::Load, {schedule_buffer_node(number, buffer(number)), position, valid});
}

NodeRef ValueUses::position_of(NodeRef node, const Shape* coordinates) {
  std::vector<NodeRef> at(coordinates->dims().begin(), coordinates->dims().end()),
      sizes(node->shape->dims().begin(), node->shape->dims().end());
  const std::vector<size_t>& layout = state(node).layout;
  for (size_t i = 0; i < layout.size(); ++i) {
    at[i] = (*coordinates)[layout[i]];
    sizes[i] = node->dim(layout[i]);
  }
  return simplify(flatten_index(at, sizes));
}

void ValueUses::force(NodeRef node) {
  if (node->op == Op::Buffer) return;
  state(node).forced = true;
  buffer_of(node);
}

Axis ValueUses::new_axis(NodeRef size, int depth) {
  const int64_t most = std::max<int64_t>(1, bounds(size).max);
  NodeRef variable = make_variable(fmt::format("axis{}", axes_++), 0, most - 1);
  if (!is_static(size)) {
    const Limit limit{variable, size};
    limits_.push_back(std::make_unique<LimitScope>(std::span(&limit, 1)));
  }
  loops_[variable] = {size, depth};
  return {variable, size};
}

int ValueUses::add_use(NodeRef node, int root, const Shape* coordinates, NodeRef valid) {
  if (node->dtype == DType::Index) return -1;
  ValueState& s = state(node);
  const int next = static_cast<int>(s.uses.size());
  if (s.uses.size() < kComparedUses) {
    for (int i = 0; i < next; ++i) {
      const ValueUse& use = s.uses[static_cast<size_t>(i)];
      if (use.root == root && use.coordinates == coordinates && use.valid == valid) return i;
    }
  } else {
    for (size_t i = s.use_numbers.size(); i < s.uses.size(); ++i)
      s.use_numbers.emplace(ValueUseKey{s.uses[i].root, s.uses[i].coordinates, s.uses[i].valid},
                            static_cast<int>(i));
    const auto [known, fresh] = s.use_numbers.emplace(ValueUseKey{root, coordinates, valid}, next);
    if (!fresh) return known->second;
  }
  s.uses.push_back({root, coordinates, valid});
  return next;
}

double ValueUses::evaluations(const ValueUse& use) {
  double count = 1;
  std::vector<NodeRef> counted;
  for (NodeRef coordinate : use.coordinates->dims())
    for (NodeRef variable : variables_of(coordinate).list) {
      const KernelLoop* loop = loops_.find(variable);
      if (!loop || std::ranges::count(counted, variable) > 0) continue;
      counted.push_back(variable);
      count *= size_estimate(loop->size);
    }
  return count;
}

bool ValueUses::depends(const Shape& coordinates, NodeRef variable) {
  return std::ranges::any_of(coordinates.dims(),
                             [&](NodeRef c) { return variables_of(c).contains(variable); });
}

const AxisVariables& ValueUses::variables_of(NodeRef expression) {
  if (AxisVariables* known = variables_.find(expression)) return *known;
  AxisVariables found;
  for (NodeRef node : topological_order({&expression, 1}))
    if (node->op == Op::Variable)
      found.list.push_back(node);
    else if (node->op == Op::AsIndex)
      ++found.places;
  return *variables_.insert(expression, std::move(found)).first;
}

}  // namespace anneal
