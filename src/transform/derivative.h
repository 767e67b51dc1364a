// The shape of a derivative rule, shared by the reverse and the forward table. A rule is one line
// of mathematics over the names below; its text is kept, so that `anneal explain` prints what runs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <anneal/tensor.h>

#include "ir/node.h"

namespace anneal {

// What a rule may name.
struct RuleContext {
  NodeRef node;            // the operation
  Tensor a, b, c;          // its tensor sources
  Tensor y;                // its result
  Tensor g;                // reverse: the gradient of y
  Tensor da, db, dc;       // forward: the tangents of the sources
  std::vector<int64_t> n;  // by name: the numbers behind it
};

// One tensor a source; an empty one where nothing flows.
using Parts = std::vector<Tensor>;

struct DerivativeRule {
  Op op;
  std::string_view text;
  Parts (*apply)(const RuleContext&);
};

// A derivative of a composition, by the name its custom_grad node carries. a, b are the inputs.
struct NamedDerivativeRule {
  std::string_view name, text;
  Parts (*apply)(const RuleContext&);
};
const NamedDerivativeRule* named_gradient_rule(std::string_view name);  // null: there is none
std::span<const NamedDerivativeRule> named_gradient_rules();
const NamedDerivativeRule* named_forward_rule(std::string_view name);  // null: as the value's parts

// Reverse mode: the part of each source's gradient that comes through this node.
const DerivativeRule* gradient_rule(Op op);  // null: there is none
// Forward mode: the part of the result's tangent that comes from each source's.
const DerivativeRule* forward_rule(Op op);

// A derivative as users get it. One that is constant is a value of its own, as those of zeros()
// are: it may be differentiated with respect to.
Tensor wrap_derivative(NodeRef node);

// For the tables. `Rule(Exp, g * y)` is a row.
#define ANNEAL_RULE_BODY(...)                                                       \
  [](const RuleContext& r) -> Parts {                                               \
    [[maybe_unused]] const Tensor &a = r.a, &b = r.b, &c = r.c, &y = r.y, &g = r.g; \
    [[maybe_unused]] const Tensor &da = r.da, &db = r.db, &dc = r.dc;               \
    [[maybe_unused]] const NodeRef node = r.node;                                   \
    [[maybe_unused]] const std::vector<int64_t>& n = r.n;                           \
    return {__VA_ARGS__};                                                           \
  }
#define ANNEAL_DERIVATIVE_RULE(Name, ...) {Op::Name, #__VA_ARGS__, ANNEAL_RULE_BODY(__VA_ARGS__)}
#define ANNEAL_NAMED_RULE(name, ...) {#name, #__VA_ARGS__, ANNEAL_RULE_BODY(__VA_ARGS__)}

}  // namespace anneal
