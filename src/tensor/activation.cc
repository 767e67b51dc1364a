// Activations and softmax. Each formula keeps NaN, does not overflow on its way to a finite result,
// and picks its branches by where(), so that derivatives of every order are those of the branch.
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "tensor/lift.h"
#include "tensor/named_gradient.h"
#include "tensor/number_checks.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

// -|x|, with the derivative of -x at 0. abs() has none there, which every formula below would feel.
Tensor minus_abs(const Tensor& x) { return where(x >= 0, -x, x); }

// 1 / (1 + e^-x) for x >= 0 and e^x / (1 + e^x) below: e^-|x| never overflows.
Tensor wide_sigmoid(const Tensor& x) {
  Tensor e = exp(minus_abs(x));
  return where(x >= 0, 1.0, e) / (1.0 + e);
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
Tensor wide_softplus(const Tensor& x) { return where(x >= 0, x, 0) + log1p(exp(minus_abs(x))); }

// x minus the largest along the axis: exp() of it stays in 0..1. A constant shift changes neither
// softmax nor its gradient.
Tensor shifted(const Tensor& x, int64_t axis) {
  std::array reduced{static_cast<int64_t>(checked_axis(axis, x.rank()))};
  return x - gradient_stopped(wrap(reduce_node(Op::ReduceMax, node_of(x), reduced)));
}

template <typename Function>
Tensor in_wide(const char* name, const Operand& x, Function function) {
  CallScope call(name, x.where());
  return cast(function(widen(x)), real_dtype(x));
}

}  // namespace

Tensor relu(const Operand& x) {
  CallScope call("relu", x.where());
  Tensor value = wrap(as_number(node_of(x)));
  return where(value <= 0, 0, value);
}

Tensor leaky_relu(const Operand& x, double slope) {
  CallScope call("leaky_relu", x.where());
  check_finite("the slope", slope);
  return where(x > 0, x, x * slope);
}

Tensor elu(const Operand& x, double alpha) {
  return in_wide("elu", x, [&](const Tensor& v) {
    check_finite("alpha", alpha);
    Tensor negative = where(v > 0, 0, v);  // exp of a large x would give inf * 0 in the gradient
    return where(v > 0, v, expm1(negative) * alpha);
  });
}

Tensor gelu(const Operand& x) {
  return in_wide("gelu", x, [](const Tensor& v) {
    // Halved first: 2v may overflow.
    return with_named_gradient(v * 0.5 * (erf(v * (1 / std::numbers::sqrt2)) + 1.0), "gelu", {},
                               {v});
  });
}

// Phi(x) + x phi(x), in one piece.
Tensor gelu_slope(const Tensor& x) {
  const Tensor phi = exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return (erf(x * (1 / std::numbers::sqrt2)) + 1.0) * 0.5 + x * phi;
}

namespace {

// tanh of what |x| = 10 gives is 1 to the last bit of f64, and the cube of a clamped x is finite.
constexpr double kFlatTanh = 10, kCube = 0.044715;
const double kInner = std::sqrt(2 / std::numbers::pi);

Tensor inner_tanh(const Tensor& u) { return tanh((u + u * u * u * kCube) * kInner); }

}  // namespace

Tensor gelu_tanh(const Operand& x) {
  return in_wide("gelu_tanh", x, [](const Tensor& v) {
    const Tensor value = v * 0.5 * (inner_tanh(clamp(v, -kFlatTanh, kFlatTanh)) + 1.0);
    return with_named_gradient(value, "gelu_tanh", {}, {v});
  });
}

Tensor gelu_tanh_slope(const Tensor& x) {
  const Tensor u = clamp(x, -kFlatTanh, kFlatTanh), t = inner_tanh(u);
  const Tensor inner_slope = (u * u * (3 * kCube) + 1.0) * kInner;  // where t has a slope, u is x
  return (t + 1.0) * 0.5 + u * 0.5 * ((1.0 - t * t) * inner_slope);
}

Tensor sigmoid(const Operand& x) { return in_wide("sigmoid", x, wide_sigmoid); }

Tensor silu(const Operand& x) {
  return in_wide("silu", x, [](const Tensor& v) { return v * wide_sigmoid(v); });
}

Tensor softplus(const Operand& x) { return in_wide("softplus", x, wide_softplus); }

Tensor hardswish(const Operand& x) {
  return in_wide("hardswish", x, [](const Tensor& v) {
    return v * (clamp(v + 3.0, 0, 6) / 6.0);  // 6v may overflow
  });
}

Tensor mish(const Operand& x) {
  return in_wide("mish", x, [](const Tensor& v) {
    // tanh is 1 to the last bit of f64 from 20 on; its derivatives would multiply v by itself.
    return v * tanh(wide_softplus(where(v > 40, 40, v)));
  });
}

Tensor softmax(const Operand& x, int64_t axis) {
  return in_wide("softmax", x, [&](const Tensor& v) {
    Tensor e = exp(shifted(v, axis));
    const auto along = static_cast<int64_t>(checked_axis(axis, v.rank()));
    return with_named_gradient(e / sum(e, axis, true), "softmax", {along}, {v});
  });
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  return in_wide("log_softmax", x, [&](const Tensor& v) {
    Tensor s = shifted(v, axis);
    return s - log(sum(exp(s), axis, true));
  });
}

}  // namespace anneal
