// Forward mode, one row an op: what the tangent da, db, dc of each source adds to the tangent of y.
// Written on its own, not derived from the reverse table: the two check each other.
#include <algorithm>
#include <array>
#include <numbers>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "tensor/lift.h"
#include "tensor/named_gradient.h"
#include "transform/derivative.h"
#include "transform/rule_parts.h"

#define JVP(Name, ...) ANNEAL_DERIVATIVE_RULE(Name, __VA_ARGS__)
#define NAMED_JVP(name, ...) ANNEAL_NAMED_RULE(name, __VA_ARGS__)

namespace anneal {
namespace {

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

// clang-format off
const DerivativeRule kForwardRules[] = {
    JVP(Neg, -da),
    JVP(Abs, sign(a) * da),
    JVP(Sqrt, da / (2 * y)),
    JVP(Exp, y * da),
    JVP(Exp2, kLn2 * y * da),
    JVP(Log, da / a),
    JVP(Log2, da / (kLn2 * a)),
    JVP(Log10, da / (kLn10 * a)),
    JVP(Log1p, da / (a + 1)),
    JVP(Expm1, exp(a) * da),
    JVP(Sin, cos(a) * da),
    JVP(Cos, -sin(a) * da),
    JVP(Sinh, cosh(a) * da),
    JVP(Cosh, sinh(a) * da),
    JVP(Tanh, (1 - y * y) * da),
    JVP(Asinh, da / sqrt(1 + a * a)),
    JVP(Erf, kTwoOverSqrtPi * exp(-a * a) * da),
    JVP(Erfc, -kTwoOverSqrtPi * exp(-a * a) * da),
    JVP(Floor, none()),
    JVP(Ceil, none()),
    JVP(Trunc, none()),
    JVP(Round, none()),

    JVP(Add, da, db),
    JVP(Mul, da * b, a * db),
    JVP(Div, da / b, -y * db / b),
    JVP(FloorDiv, none(), none()),
    JVP(Mod, da, -floor_divide(a, b) * db),
    JVP(Max, winner_share(b < a, a, b) * da, winner_share(a < b, a, b) * db),
    JVP(Min, winner_share(a < b, a, b) * da, winner_share(b < a, a, b) * db),
    JVP(Pow, where(b == 0, 0, b * pow(a, b - 1)) * da,
             where(a > 0, y * log(where(a > 0, a, 1)), 0) * db),
    JVP(Atan2, b / (a * a + b * b) * da, -a / (a * a + b * b) * db),
    JVP(Where, none(), where(a, db, 0), where(a, 0, dc)),
    JVP(Cast, float_part(da, y)),

    JVP(ReduceSum, same_reduction(da, node)),
    JVP(ReduceProd, same_reduction(da * product_of_others(a, node), node)),
    JVP(ReduceMax, same_reduction(da * extreme_share(a, y, node), node)),
    JVP(ReduceMin, same_reduction(da * extreme_share(a, y, node), node)),

    JVP(Reshape, same_movement(da, node)),
    JVP(Permute, same_movement(da, node)),
    JVP(Expand, same_movement(da, node)),
    JVP(Pad, same_movement(da, node)),
    JVP(Shrink, same_movement(da, node)),
    JVP(Flip, same_movement(da, node)),

    JVP(Gather, gather_at(da, b, node), none()),
    JVP(ScatterAdd, da, none(), scatter_add_at(literal_like(a, 0), b, dc, node)),
    JVP(Scatter, scatter_at(da, b, literal_like(c, 0), node), none(),
                 scatter_at(literal_like(a, 0), b, dc, node)),

    JVP(Contiguous, da),
    JVP(StopGradient, none()),
    JVP(CustomGrad, da),
    JVP(Named, da),
    JVP(Assign, none(), db),
};

// By name, where that is better than the tangent of the value's parts: a convolution's tangents are
// convolutions, which the scheduler knows as such. Here a, b are the inputs behind the value y.
const NamedDerivativeRule kNamedForwardRules[] = {
    NAMED_JVP(conv, conv_forward(n, da, b), conv_forward(n, a, db)),
    NAMED_JVP(conv_transpose, conv_adjoint(n, y, b, da), conv_adjoint(n, y, db, a)),
    NAMED_JVP(conv_weights, conv_weight_gradient(n, da, y, b), conv_weight_gradient(n, a, y, db)),
};
// clang-format on

}  // namespace

const NamedDerivativeRule* named_forward_rule(std::string_view name) {
  const auto* row = std::ranges::find(kNamedForwardRules, name, &NamedDerivativeRule::name);
  return row == std::ranges::end(kNamedForwardRules) ? nullptr : row;
}

const DerivativeRule* forward_rule(Op op) {
  static const auto table = [] {
    std::array<const DerivativeRule*, kOpCount> rows{};
    for (const DerivativeRule& rule : kForwardRules) rows[static_cast<size_t>(rule.op)] = &rule;
    return rows;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace anneal
