#include "kernel/body/unswitch_axes.h"

#include <algorithm>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "ir/semantics.h"
#include "kernel/plan/axis_form.h"
#include "kernel/plan/cost.h"
#include "rewrite/local_rules.h"

namespace anneal {
namespace {

bool is_simple(const KernelBody& body) {
  if (!body.tiles.empty()) return false;
  for (NodeRef store : body.stores)
    if (store->op != Op::Store || store->arg.axis != static_cast<int64_t>(store_axes(store).size()))
      return false;
  for (NodeRef node : topological_order(body.stores)) {
    const bool in_place =
        node->op == Op::Load && std::ranges::any_of(body.stores, [&](NodeRef store) {
          return store->source(0) == node->source(0);
        });
    if (is_reduce_over(node->op) || in_place) return false;
  }
  return true;
}

// Whether the axis is nowhere in the value but in conditions that are made of it and constants.
bool only_chooses(NodeRef store, NodeRef axis, FreeAxes& free) {
  AxisSet just;
  const size_t number = free.number(axis);
  just.add(number);
  std::vector<NodeRef> stack{store->source(2), store->source(3)};
  NodeMap<char> seen;
  bool chooses = false;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (!free.of(node).contains(number) || !seen.insert(node, 1).second) continue;
    if (!is_elementwise(node->op)) return false;
    std::span<const NodeRef> sources = node->sources();
    if (node->op == Op::Where && free.of(sources[0]) == just) {
      chooses = true;
      sources = sources.subspan(1);
    }
    stack.insert(stack.end(), sources.begin(), sources.end());
  }
  return chooses;
}

bool is_unit_stride(NodeRef store, NodeRef axis, FreeAxes& free) {
  const AxisForm form = axis_form(store->source(1), free);
  if (form.overflow || form.in_rest.contains(free.number(axis))) return true;
  const LinearForm slope = form.slope(free.number(axis));
  return !is_constant(slope) || slope.constant == 1;
}

// Where the axis has a value, conditions become constants, and choices one of theirs.
struct Nothing {};
const LocalRules<const Nothing> kRules{
    "unswitch-axes",
    {
        {"fold-constants", captures::x,
         [](NodeRef, NodeRef image, const Nothing&) {
           const bool known =
               is_elementwise(image->op) && image->source_count > 0 &&
               std::ranges::all_of(image->sources(), [](NodeRef s) { return s->is_const(); });
           if (!known) return unchanged;
           std::vector<Scalar> scalars;
           for (NodeRef source : image->sources()) scalars.push_back(source->scalar());
           return make_const(evaluate(image->op, image->dtype, scalars));
         }},
        {"decide-choice", any_of({Op::Where}),
         [](NodeRef, NodeRef image, const Nothing&) {
           if (!image->source(0)->is_const()) return unchanged;
           return image->source(image->source(0)->arg.bits == 1 ? 1 : 2);
         }},
    },
    true};

NodeRef decided(NodeRef root) {
  const Nothing nothing;
  return rewrite_once(std::span(&root, 1), kRules, nothing)[0];
}

NodeRef without_axis(NodeRef store, NodeRef axis, int64_t value) {
  NodeMap<NodeRef> by;
  by[axis] = index_const(value);
  std::vector<NodeRef> roots(store->sources().begin(), store->sources().begin() + 4);
  std::vector<NodeRef> sources = substitute(roots, by);
  sources[3] = decided(sources[3]);
  sources[2] = decided(sources[2]);
  for (NodeRef other : store_axes(store))
    if (other != axis) sources.push_back(other);
  return make(Op::Store, sources, Arg(store->arg.axis - 1));
}

}  // namespace

KernelBody unswitch_axes(const KernelBody& body) {
  if (!is_simple(body)) return body;
  FreeAxes free(body);
  KernelBody result = body;
  for (const Axis& axis : body.axes) {
    if (!is_static(axis.size) || static_value(axis.size) > kMostChoices) continue;
    const int64_t size = static_value(axis.size);
    const bool chooses = std::ranges::all_of(result.stores, [&](NodeRef store) {
      return std::ranges::count(store_axes(store), axis.variable) > 0 &&
             only_chooses(store, axis.variable, free) &&
             !is_unit_stride(store, axis.variable, free);
    });
    if (!chooses || static_cast<int64_t>(result.stores.size()) * size > kMostChosenStores) continue;
    std::vector<NodeRef> stores;
    for (NodeRef store : result.stores)
      for (int64_t value = 0; value < size; ++value)
        stores.push_back(without_axis(store, axis.variable, value));
    result.stores = std::move(stores);
    std::erase_if(result.axes, [&](const Axis& each) { return each.variable == axis.variable; });
  }
  return result;
}

}  // namespace anneal
