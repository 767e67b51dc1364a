// Reverse mode, one row an op: given g, the gradient of y, the gradient of each source.
// An op without a row cannot be differentiated; gradients through it are an error that names it.
#include <algorithm>
#include <array>
#include <numbers>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "tensor/lift.h"
#include "tensor/named_gradient.h"
#include "transform/derivative.h"
#include "transform/rule_parts.h"

#define GRAD(Name, ...) ANNEAL_DERIVATIVE_RULE(Name, __VA_ARGS__)
#define NAMED_GRAD(name, ...) ANNEAL_NAMED_RULE(name, __VA_ARGS__)

namespace anneal {
namespace {

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

// clang-format off
const DerivativeRule kGradientRules[] = {
    GRAD(Neg, -g),
    GRAD(Abs, g * sign(a)),
    GRAD(Sqrt, g / (2 * y)),
    GRAD(Exp, g * y),
    GRAD(Exp2, g * y * kLn2),
    GRAD(Log, g / a),
    GRAD(Log2, g / (a * kLn2)),
    GRAD(Log10, g / (a * kLn10)),
    GRAD(Log1p, g / (1 + a)),
    GRAD(Expm1, g * exp(a)),
    GRAD(Sin, g * cos(a)),
    GRAD(Cos, -g * sin(a)),
    GRAD(Sinh, g * cosh(a)),
    GRAD(Cosh, g * sinh(a)),
    GRAD(Tanh, g * (1 - y * y)),
    GRAD(Asinh, g / sqrt(a * a + 1)),
    GRAD(Erf, g * kTwoOverSqrtPi * exp(-a * a)),
    GRAD(Erfc, -g * kTwoOverSqrtPi * exp(-a * a)),
    GRAD(Floor, none()),
    GRAD(Ceil, none()),
    GRAD(Trunc, none()),
    GRAD(Round, none()),

    GRAD(Add, g, g),
    GRAD(Mul, g * b, g * a),
    GRAD(Div, g / b, -g * y / b),
    GRAD(FloorDiv, none(), none()),
    GRAD(Mod, g, -g * floor_divide(a, b)),
    GRAD(Max, g * winner_share(b < a, a, b), g * winner_share(a < b, a, b)),
    GRAD(Min, g * winner_share(a < b, a, b), g * winner_share(b < a, a, b)),
    GRAD(Pow, g * where(b == 0, 0, b * pow(a, b - 1)),
              g * where(a > 0, y * log(where(a > 0, a, 1)), 0)),
    // At the origin NaN, as PyTorch and JAX have it: every number is its slope along some way there.
    GRAD(Atan2, g * b / (a * a + b * b), -g * a / (a * a + b * b)),
    GRAD(Where, none(), where(a, g, 0), where(a, 0, g)),
    GRAD(Cast, float_part(g, a)),

    GRAD(ReduceSum, repeat_like(g, a)),
    GRAD(ReduceProd, repeat_like(g, a) * product_of_others(a, node)),
    GRAD(ReduceMax, repeat_like(g, a) * extreme_share(a, y, node)),
    GRAD(ReduceMin, repeat_like(g, a) * extreme_share(a, y, node)),

    GRAD(Reshape, reshape_like(g, a)),
    GRAD(Permute, unpermute(g, node)),
    GRAD(Expand, sum_like(g, a)),
    GRAD(Pad, unpad(g, node)),
    GRAD(Shrink, unshrink(g, node)),
    GRAD(Flip, unflip(g, node)),

    GRAD(Gather, scatter_add_at(literal_like(a, 0), b, g, node), none()),
    GRAD(ScatterAdd, g, none(), gather_at(g, b, node)),
    GRAD(Scatter, where(is_written(a, b, node), 0, g), none(),
                  where(is_last_writer(a, b, node), gather_at(g, b, node), 0)),

    GRAD(Contiguous, g),
    GRAD(StopGradient, none()),
    GRAD(Named, g),
    GRAD(Assign, none(), g),
};

// Compositions that have a better gradient than their parts give; a row's name is on the node that
// with_named_gradient() makes (tensor/named_gradient.h), a, b are its inputs and n its numbers.
const NamedDerivativeRule kNamedGradientRules[] = {
    NAMED_GRAD(gelu, g * gelu_slope(a)),
    NAMED_GRAD(gelu_tanh, g * gelu_tanh_slope(a)),
    // Of the results, which those who use them have stored: no exponentials again.
    NAMED_GRAD(softmax, y * (g - sum(y * g, n.at(0), true))),
    NAMED_GRAD(counted_mean, g * counted_share(b, a.dtype()), none()),

    NAMED_GRAD(conv, conv_adjoint(n, a, b, g), conv_weight_gradient(n, a, b, g)),
    NAMED_GRAD(conv_transpose, conv_transpose_adjoint(n, a, b, g),
                               conv_transpose_weight_gradient(n, a, b, g)),
    // Of the gradient of a convolution with respect to its weight: of x and of y's gradient.
    NAMED_GRAD(conv_weights, conv_adjoint(n, a, g, b), conv_forward(n, a, g)),
};
// clang-format on

}  // namespace

std::span<const NamedDerivativeRule> named_gradient_rules() { return kNamedGradientRules; }

const NamedDerivativeRule* named_gradient_rule(std::string_view name) {
  const auto* row = std::ranges::find(kNamedGradientRules, name, &NamedDerivativeRule::name);
  return row == std::ranges::end(kNamedGradientRules) ? nullptr : row;
}

const DerivativeRule* gradient_rule(Op op) {
  static const auto table = [] {
    std::array<const DerivativeRule*, kOpCount> rows{};
    for (const DerivativeRule& rule : kGradientRules) rows[static_cast<size_t>(rule.op)] = &rule;
    return rows;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace anneal
