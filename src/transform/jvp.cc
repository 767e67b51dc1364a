// Forward mode: carries tangents from the inputs to the outputs, in the order values are computed.
#include <fmt/format.h>

#include <anneal/grad.h>

#include "ir/node_map.h"
#include "tensor/lift.h"
#include "tensor/named_gradient.h"
#include "transform/derivative.h"

namespace anneal {
namespace {

// Rules name every tangent; those of sources that do not move are zeros nobody will use.
Tensor tangent_or_zero(const NodeMap<NodeRef>& tangent, NodeRef source) {
  const NodeRef* known = tangent.find(source);
  if (known) return wrap(*known);
  return is_float(source->dtype) ? wrap(make_const_like(source, 0)) : Tensor();
}

// The rule of a node by op, or by the name of a mark.
struct ForwardRule {
  Parts (*apply)(const RuleContext&) = nullptr;
  size_t first = 0;  // of the sources that it names a, b, c
  std::vector<int64_t> numbers = {};
};

ForwardRule rule_of(NodeRef node) {
  if (node->op == Op::CustomGrad) {
    GradientName called = gradient_name(node);
    if (const NamedDerivativeRule* rule = named_forward_rule(called.name))
      return {rule->apply, 1, std::move(called.numbers)};
  }
  const DerivativeRule* rule = forward_rule(node->op);
  return {rule ? rule->apply : nullptr};
}

NodeRef tangent_of(NodeRef node, const NodeMap<NodeRef>& tangent) {
  const ForwardRule rule = rule_of(node);
  if (!rule.apply)
    fail(fmt::format("{} has no forward rule{}", name(node->op),
                     node->origin ? ", made by " + to_text(*node->origin) : std::string()),
         "use stop_gradient() around it");
  RuleContext context;
  context.node = node;
  context.y = wrap(node);
  context.n = rule.numbers;
  std::span<const NodeRef> sources = node->tensors().subspan(rule.first);
  std::array<std::pair<Tensor*, Tensor*>, 3> names{
      {{&context.a, &context.da}, {&context.b, &context.db}, {&context.c, &context.dc}}};
  for (size_t s = 0; s < std::min(sources.size(), names.size()); ++s) {
    *names[s].first = wrap(sources[s]);
    *names[s].second = tangent_or_zero(tangent, sources[s]);
  }
  Parts parts = rule.apply(context);
  NodeRef sum = nullptr;
  for (size_t s = 0; s < parts.size(); ++s) {
    if (!parts[s].defined() || !tangent.contains(sources[s])) continue;
    NodeRef part = node_of(parts[s]);
    if (part->shape != node->shape || part->dtype != node->dtype)
      throw InternalError(fmt::format("a tangent of {} is {}, it should be {}", name(node->op),
                                      type_text(part), type_text(node)));
    sum = sum ? make(Op::Add, {sum, part}) : part;
  }
  return sum;
}

}  // namespace

std::vector<Tensor> jvp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& tangents, Location where) {
  CallScope call("jvp", where);
  if (inputs.size() != tangents.size())
    fail(fmt::format("{} inputs and {} tangents", inputs.size(), tangents.size()),
         "give one tangent an input");
  NodeMap<NodeRef> tangent;
  for (size_t i = 0; i < inputs.size(); ++i) {
    NodeRef input = node_of(inputs[i]), direction = node_of(tangents[i]);
    if (input->shape != direction->shape || input->dtype != direction->dtype ||
        !is_float(input->dtype))
      fail(fmt::format("input {} is {}, its tangent is {}", i, type_text(input),
                       type_text(direction)),
           "a tangent has the shape and the float dtype of its input");
    if (!tangent.insert(input, direction).second)
      fail(fmt::format("input {} is one value with an input before it", i),
           "equal expressions are one value: build from named() ones, or add up the tangents");
  }

  std::vector<NodeRef> roots;
  for (const Tensor& output : outputs) roots.push_back(node_of(output));
  for (NodeRef node : topological_order(roots)) {
    if (tangent.contains(node) || !is_float(node->dtype)) continue;
    bool moves = false;
    for (NodeRef source : node->tensors()) moves = moves || tangent.contains(source);
    if (!moves) continue;
    OriginScope origin(node->origin);
    if (NodeRef sum = tangent_of(node, tangent)) tangent[node] = sum;
  }

  std::vector<Tensor> results;
  for (NodeRef root : roots) {
    NodeRef* found = tangent.find(root);
    results.push_back(wrap_derivative(found ? *found : make_const_like(root, 0)));
  }
  return results;
}

}  // namespace anneal
