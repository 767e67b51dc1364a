#include "schedule/graph/conv_rules.h"

#include <optional>
#include <utility>

#include "schedule/graph/winograd.h"
#include "tensor/lift.h"
#include "tensor/named_gradient.h"

namespace anneal {
namespace {

// Rules are functions without a state: what the target says, while they are applied.
thread_local const Capabilities* current_capabilities = nullptr;

class CapabilitiesScope {
 public:
  explicit CapabilitiesScope(const Capabilities& capabilities)
      : before_(std::exchange(current_capabilities, &capabilities)) {}
  ~CapabilitiesScope() { current_capabilities = before_; }
  CapabilitiesScope(const CapabilitiesScope&) = delete;
  CapabilitiesScope& operator=(const CapabilitiesScope&) = delete;

 private:
  const Capabilities* before_;
};

// A mark: the value as the definition computes it, and the two operands of a convolution in two
// spatial axes, without groups, strides and dilation. Others have no other way.
struct MarkedConv {
  Tensor value, a, b;
  Border border;
};

bool has_other_ways(NodeRef mark, const std::vector<int64_t>& n) {
  if (mark->rank() != 4 || n.size() != 7) return false;
  return n == std::vector<int64_t>{1, 1, n[2], 1, 1, n[5], 1};
}

std::optional<MarkedConv> marked_conv(NodeRef mark, std::string_view name) {
  const GradientName called = gradient_name(mark);
  const std::vector<int64_t>& n = called.numbers;
  if (called.name != name || !has_other_ways(mark, n)) return {};
  return MarkedConv{wrap(mark->source(0)), wrap(mark->source(1)), wrap(mark->source(2)),
                    Border{n[2], n[5]}};
}

NodeRef forwards(const Match& m) {
  const auto c = marked_conv(m.root(), "conv");
  if (!c ||
      !winograd_pays(c->a.shape(), c->b.shape(), c->a.dtype(), c->border, *current_capabilities))
    return unchanged;
  return node_of(winograd(c->a, c->b, c->border));
}

NodeRef backwards(const Match& m) {
  const auto c = marked_conv(m.root(), "conv_transpose");
  if (!c || !winograd_adjoint_pays(c->a.shape(), c->b.shape(), c->a.dtype(), c->border,
                                   *current_capabilities))
    return unchanged;
  return node_of(winograd_adjoint(c->a, c->b, c->border));
}

NodeRef to_weights(const Match& m) {
  const auto c = marked_conv(m.root(), "conv_weights");
  if (!c || !winograd_pays(c->a.shape(), c->value.shape(), c->a.dtype(), c->border,
                           *current_capabilities))
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

bool marks_convolution(NodeRef node) {
  if (node->op != Op::CustomGrad) return false;
  const GradientName called = gradient_name(node);
  return (called.name == "conv" || called.name == "conv_transpose" ||
          called.name == "conv_weights") &&
         has_other_ways(node, called.numbers);
}

std::vector<NodeRef> choose_convolutions(std::span<const NodeRef> roots,
                                         const Capabilities& capabilities, RewriteLog* log,
                                         const DisabledRules& disabled) {
  const CapabilitiesScope scope(capabilities);
  return Rewriter({&kConvRules}, Direction::BottomUp, disabled, log).run(roots);
}

}  // namespace anneal
