#include "schedule/graph/conv_rules.h"

#include <optional>

#include "schedule/graph/winograd.h"
#include "tensor/lift.h"
#include "tensor/named_gradient.h"

namespace anneal {
namespace {

// A mark: the value as the definition computes it, and the two operands of a convolution in two
// spatial axes, without groups, strides and dilation. Others have no other way.
struct MarkedConv {
  Tensor value, a, b;
  Border border;
};

std::optional<MarkedConv> marked_conv(NodeRef mark, std::string_view name) {
  const GradientName called = gradient_name(mark);
  const std::vector<int64_t>& n = called.numbers;
  if (called.name != name || mark->rank() != 4 || n.size() != 7) return {};
  const std::vector<int64_t> simple{1, 1, n[2], 1, 1, n[5], 1};
  if (n != simple) return {};
  return MarkedConv{wrap(mark->source(0)), wrap(mark->source(1)), wrap(mark->source(2)),
                    Border{n[2], n[5]}};
}

NodeRef forwards(const Match& m) {
  const auto c = marked_conv(m.root(), "conv");
  if (!c ||
      !winograd_pays(c->a.shape(), c->b.shape(), c->a.dtype(), c->border, m.facts<Capabilities>()))
    return unchanged;
  return node_of(winograd(c->a, c->b, c->border));
}

NodeRef backwards(const Match& m) {
  const auto c = marked_conv(m.root(), "conv_transpose");
  if (!c || !winograd_adjoint_pays(c->a.shape(), c->b.shape(), c->a.dtype(), c->border,
                                   m.facts<Capabilities>()))
    return unchanged;
  return node_of(winograd_adjoint(c->a, c->b, c->border));
}

NodeRef to_weights(const Match& m) {
  const auto c = marked_conv(m.root(), "conv_weights");
  if (!c || !winograd_pays(c->a.shape(), c->value.shape(), c->a.dtype(), c->border,
                           m.facts<Capabilities>()))
    return unchanged;
  return node_of(winograd_weights(c->a, c->b, c->border));
}

}  // namespace

const RuleSet kConvRules{"winograd",
                         {
                             {"conv", any_of({Op::CustomGrad}), forwards},
                             {"conv-transpose", any_of({Op::CustomGrad}), backwards},
                             {"conv-weights", any_of({Op::CustomGrad}), to_weights},
                         }};

std::vector<NodeRef> choose_convolutions(std::span<const NodeRef> roots,
                                         const Capabilities& capabilities, RewriteLog* log,
                                         const DisabledRules& disabled) {
  return Rewriter({&kConvRules}, Direction::BottomUp, disabled, log, nullptr, Facts(capabilities))
      .run(roots);
}

}  // namespace anneal
