// Reverse mode: walks the graph from the loss to the inputs and adds up what the rules say.
#include <fmt/format.h>

#include <anneal/grad.h>

#include "ir/node_map.h"
#include "tensor/lift.h"
#include "tensor/named_gradient.h"
#include "transform/derivative.h"

namespace anneal {
namespace {

std::string origin_text(NodeRef node) {
  return node->origin ? ", made by " + to_text(*node->origin) : std::string();
}

std::string describe(NodeRef node) {
  if (node->op == Op::Buffer && node->arg.symbol->length > 0)
    return fmt::format("parameter \"{}\"", node->arg.symbol->text());
  if (node->op == Op::Named && node->arg.symbol->length > 0)
    return fmt::format("\"{}\"", node->arg.symbol->text());
  const std::string_view what = node->op == Op::Named ? "tensor" : name(node->op);
  return fmt::format("the {} of {}{}", what, shape_text(node), origin_text(node));
}

void check_input(NodeRef input) {
  if (!is_float(input->dtype))
    fail(fmt::format("{} is {}, which has no gradient", describe(input), name(input->dtype)),
         "gradients are taken of float tensors");
}

Tensor checked_seed(NodeRef loss, const Tensor& seed) {
  if (!is_float(loss->dtype))
    fail(fmt::format("the loss is {}, which has no gradient", name(loss->dtype)), "cast it to f32");
  if (seed.defined()) {
    NodeRef node = node_of(seed);
    if (node->shape != loss->shape || node->dtype != loss->dtype)
      fail(fmt::format("the seed is {}, the result is {}", type_text(node), type_text(loss)),
           "give a seed of the same shape and dtype");
    return seed;
  }
  if (loss->rank() != 0)
    fail(fmt::format("the loss has the shape {}", shape_text(loss)),
         "reduce it to a scalar, with sum() or mean(), or give GradOptions::seed");
  return wrap(make_const_like(loss, 1));
}

// The nodes through which a change of an input reaches the loss.
NodeMap<char> dependents(std::span<const NodeRef> order, std::span<const NodeRef> inputs) {
  NodeMap<char> depends(order.size());
  for (NodeRef input : inputs) depends[input] = 1;
  for (NodeRef node : order)
    for (NodeRef source : node->tensors())
      if (depends.contains(source)) depends[node] = 1;
  return depends;
}

RuleContext context_of(NodeRef node) {
  RuleContext context;
  context.node = node;
  context.y = wrap(node);
  std::span<const NodeRef> sources = node->tensors();
  if (!sources.empty()) context.a = wrap(sources[0]);
  if (sources.size() > 1) context.b = wrap(sources[1]);
  if (sources.size() > 2) context.c = wrap(sources[2]);
  return context;
}

// Of the row that a name stands for: its inputs are what follows the value.
Parts named_parts(const NamedDerivativeRule& rule, NodeRef node, const Tensor& gradient) {
  RuleContext context;
  context.node = node;
  context.y = wrap(node);
  context.g = gradient;
  context.n = gradient_name(node).numbers;
  std::span<const NodeRef> inputs = node->tensors().subspan(1);
  if (!inputs.empty()) context.a = wrap(inputs[0]);
  if (inputs.size() > 1) context.b = wrap(inputs[1]);
  return rule.apply(context);
}

// A rule by name or a user's own: nothing to the value, what it says to the inputs.
Parts custom_parts(NodeRef node, const Tensor& gradient) {
  const auto* backward = static_cast<const Backward*>(current_graph().attached(node));
  const NamedDerivativeRule* named = named_gradient_rule(gradient_name(node).name);
  if (!backward && !named) throw InternalError("custom_grad: its function is gone");
  Parts parts = named ? named_parts(*named, node, gradient) : (*backward)(gradient);
  size_t wanted = node->tensors().size() - 1;
  if (parts.size() != wanted)
    fail(fmt::format("a custom gradient answered {} tensors for {} inputs", parts.size(), wanted),
         "answer one tensor an input");
  parts.insert(parts.begin(), Tensor());
  return parts;
}

Parts parts_of(NodeRef node, const Tensor& gradient) {
  if (node->op == Op::CustomGrad) return custom_parts(node, gradient);
  const DerivativeRule* rule = gradient_rule(node->op);
  if (!rule)
    fail(fmt::format("{} has no gradient rule{}", name(node->op), origin_text(node)),
         "use stop_gradient() or custom_gradient() around it");
  RuleContext context = context_of(node);
  context.g = gradient;
  return rule->apply(context);
}

}  // namespace

Tensor wrap_derivative(NodeRef node) { return node->is_const() ? wrap_new(node) : wrap(node); }

std::vector<Tensor> grad(const Operand& loss, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  CallScope call("grad", loss.where());
  NodeRef root = node_of(loss);
  std::vector<NodeRef> wanted;
  for (const Tensor& input : inputs) wanted.push_back(node_of(input));
  for (NodeRef input : wanted) check_input(input);
  Tensor seed = checked_seed(root, options.seed);

  std::vector<NodeRef> order = topological_order({&root, 1});
  NodeMap<char> depends = dependents(order, wanted);
  NodeMap<NodeRef> gradient(order.size());
  gradient[root] = node_of(seed);
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef node = order[i];
    NodeRef* known = gradient.find(node);
    if (!known || node->tensors().empty() || !depends.contains(node)) continue;
    bool leads_on = false;  // an input has nothing below it, unless another input is below
    for (NodeRef source : node->tensors()) leads_on = leads_on || depends.contains(source);
    if (!leads_on) continue;
    OriginScope origin(node->origin);
    Parts parts = parts_of(node, wrap(*known));
    for (size_t s = 0; s < parts.size(); ++s) {
      NodeRef source = node->source(s);
      if (!parts[s].defined() || !depends.contains(source)) continue;
      NodeRef part = node_of(parts[s]);
      if (part->shape != source->shape || part->dtype != source->dtype)
        fail(fmt::format("a gradient of {} is {}, it should be {}", name(node->op), type_text(part),
                         type_text(source)),
             "a custom gradient has the shape and dtype of its input");
      auto [sum, first] = gradient.insert(source, part);
      if (!first) *sum = make(Op::Add, {*sum, part});
    }
  }

  std::vector<Tensor> results;
  NodeMap<char> reached(order.size());
  for (NodeRef node : order) reached[node] = 1;
  for (NodeRef input : wanted) {
    if (!reached.contains(input) && !options.allow_unused)
      fail(fmt::format("the loss does not depend on {}", describe(input)),
           "leave it out, use it, or set GradOptions::allow_unused for zeros");
    NodeRef* found = gradient.find(input);
    results.push_back(wrap_derivative(found ? *found : make_const_like(input, 0)));
  }
  return results;
}

Tensor custom_gradient(const Operand& value, const std::vector<Tensor>& inputs, Backward backward) {
  CallScope call("custom_gradient", value.where());
  std::vector<NodeRef> sources{node_of(value)};
  for (const Tensor& input : inputs) sources.push_back(node_of(input));
  Graph& graph = current_graph();
  NodeRef node =
      make(Op::CustomGrad, sources, Arg(graph.intern_symbol("custom", new_buffer_slot(), 0)));
  graph.attach(node, std::make_shared<const Backward>(std::move(backward)));
  return wrap(node);
}

}  // namespace anneal
