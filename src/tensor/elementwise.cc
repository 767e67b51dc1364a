// Elementwise functions. Each is a primitive op after broadcasting and promotion, or a formula over
// such; the formula is the definition.
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include <anneal/grad.h>
#include <anneal/tensor.h>

#include "tensor/lift.h"

namespace anneal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// `a` says where the user's line is, unless only `b` is written there (2 * x has both).
Tensor binary(const char* name, Op op, const Operand& a, const Operand& b) {
  CallScope call(name, a.where());
  auto [left, right] = meet(a, b);
  return wrap(make(op, {left, right}));
}

// An integer tensor and a number, which may be a fraction or beyond the dtype: x < 2.5 is x < 3,
// and what no integer of the dtype decides is known. `number_first` says where the number stands.
NodeRef compare_integers(Op op, NodeRef x, const Number& number, bool number_first) {
  Number whole = number;
  if (number.kind() == Number::Kind::Float) {
    const bool up = (op == Op::Lt) != number_first;
    whole = up ? std::ceil(number.real()) : std::floor(number.real());
  }
  auto known = [&](bool holds) { return make_const(DType::Bool, holds, x->shape->dims()); };
  if (std::isnan(number.real())) return known(false);
  if (op == Op::Eq && whole.real() != number.real()) return known(false);
  if (!fits(whole, x->dtype)) return known(op != Op::Eq && (whole.real() > 0) != number_first);
  NodeRef value = make_const(scalar_of(whole, x->dtype), x->shape->dims());
  return number_first ? make(op, {value, x}) : make(op, {x, value});
}

Tensor comparison(const char* name, Op op, const Operand& a, const Operand& b) {
  CallScope call(name, a.where());
  const bool number_first = b.kind() == Operand::Kind::Tensor;
  const Operand& tensor = number_first ? b : a;
  const Operand& number = number_first ? a : b;
  if (tensor.kind() == Operand::Kind::Tensor && number.kind() != Operand::Kind::Tensor) {
    NodeRef x = node_of(tensor);
    if (is_bool(x->dtype) && number.kind() != Operand::Kind::Bool) x = as_number(x);
    if (is_int(x->dtype)) return wrap(compare_integers(op, x, number.number(), number_first));
  }
  auto [left, right] = meet(a, b, /*arithmetic=*/false);
  return wrap(make(op, {left, right}));
}

// Bitwise on integers, logical on bool.
Tensor bitwise(const char* name, Op op, const Operand& a, const Operand& b) {
  CallScope call(name, a.where());
  auto [left, right] = meet(a, b, /*arithmetic=*/false);
  if (is_float(left->dtype))
    fail(fmt::format("bits of {} are not numbers", anneal::name(left->dtype)),
         "cast to an integer, or bitcast to see the bits");
  return wrap(make(op, {left, right}));
}

Tensor shift(const char* name, Op op, const Operand& a, const Operand& b) {
  CallScope call(name, a.where());
  auto [left, right] = meet(a, b);
  if (is_float(left->dtype))
    fail(fmt::format("{} cannot be shifted", anneal::name(left->dtype)),
         "cast to an integer first");
  return wrap(make(op, {left, right}));
}

// A function of real numbers: integers become f32.
Tensor real(const char* name, Op op, const Operand& x) {
  CallScope call(name, x.where());
  return wrap(make(op, {as_float(node_of(x))}));
}

Tensor real_binary(const char* name, Op op, const Operand& a, const Operand& b) {
  CallScope call(name, a.where());
  const DType dtype = meeting_dtype(std::array{&a, &b});
  auto [left, right] = meet_in(is_float(dtype) ? dtype : DType::F32, a, b);
  return wrap(make(op, {left, right}));
}

// A rounding: integers stay as they are.
Tensor rounding(const char* name, Op op, const Operand& x) {
  CallScope call(name, x.where());
  NodeRef node = as_number(node_of(x));
  return wrap(is_float(node->dtype) ? make(op, {node}) : node);
}

}  // namespace

Tensor operator+(const Operand& a, const Operand& b) { return binary("add", Op::Add, a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return binary("multiply", Op::Mul, a, b); }
Tensor operator%(const Operand& a, const Operand& b) { return binary("remainder", Op::Mod, a, b); }
Tensor floor_divide(const Operand& a, const Operand& b) {
  return binary("floor_divide", Op::FloorDiv, a, b);
}
Tensor maximum(const Operand& a, const Operand& b) { return binary("maximum", Op::Max, a, b); }
Tensor minimum(const Operand& a, const Operand& b) { return binary("minimum", Op::Min, a, b); }

Tensor operator-(const Operand& a, const Operand& b) {
  CallScope call("subtract", a.where());
  auto [left, right] = meet(a, b);
  return wrap(make(Op::Add, {left, make(Op::Neg, {right})}));
}

Tensor operator-(const Operand& a) {
  CallScope call("negate", a.where());
  return wrap(make(Op::Neg, {as_number(node_of(a))}));
}

Tensor operator/(const Operand& a, const Operand& b) {
  return real_binary("divide", Op::Div, a, b);
}
Tensor atan2(const Operand& y, const Operand& x) { return real_binary("atan2", Op::Atan2, y, x); }

Tensor operator&(const Operand& a, const Operand& b) { return bitwise("and", Op::And, a, b); }
Tensor operator|(const Operand& a, const Operand& b) { return bitwise("or", Op::Or, a, b); }
Tensor operator^(const Operand& a, const Operand& b) { return bitwise("xor", Op::Xor, a, b); }
Tensor operator~(const Operand& a) {
  CallScope call("not", a.where());
  NodeRef node = node_of(a);
  if (is_float(node->dtype)) return bitwise("not", Op::Xor, a, a);  // which says what is wrong
  NodeRef ones = make_const(Scalar::of_int(node->dtype, -1), node->shape->dims());
  return wrap(make(Op::Xor, {node, ones}));
}
Tensor operator!(const Operand& a) {
  CallScope call("not", a.where());
  return wrap(make_cast(node_of(a), DType::Bool)) ^ true;
}
Tensor operator<<(const Operand& a, const Operand& b) { return shift("shift_left", Op::Shl, a, b); }
Tensor operator>>(const Operand& a, const Operand& b) {
  return shift("shift_right", Op::Shr, a, b);
}

Tensor operator<(const Operand& a, const Operand& b) { return comparison("less", Op::Lt, a, b); }
Tensor operator<=(const Operand& a, const Operand& b) {
  return comparison("less_equal", Op::Le, a, b);
}
Tensor operator>(const Operand& a, const Operand& b) { return comparison("greater", Op::Lt, b, a); }
Tensor operator>=(const Operand& a, const Operand& b) {
  return comparison("greater_equal", Op::Le, b, a);
}
Tensor operator==(const Operand& a, const Operand& b) { return comparison("equal", Op::Eq, a, b); }
Tensor operator!=(const Operand& a, const Operand& b) {
  CallScope call("not_equal", a.where());
  return (a == b) ^ true;
}

Tensor pow(const Operand& a, const Operand& b) {
  CallScope call("pow", a.where());
  // Integers to a power below 0 are fractions.
  const bool known = b.kind() == Operand::Kind::Int && !b.number().above_i64();
  if (known && b.integer() < 0 && !is_float(node_of(a)->dtype)) return pow(a, b.real());
  auto [base, exponent] = meet(a, b);
  if (is_float(base->dtype)) return wrap(make(Op::Pow, {base, exponent}));
  if (!known) return wrap(make(Op::Pow, {as_float(base), as_float(exponent)}));
  // Integers to a known power stay integers: square and multiply.
  Tensor result = wrap(make_const_like(base, 1)), square = wrap(base);
  for (int64_t bits = b.integer(); bits != 0; bits >>= 1) {
    if (bits & 1) result = result * square;
    if (bits > 1) square = square * square;
  }
  return result;
}

Tensor where(const Operand& condition, const Operand& a, const Operand& b) {
  CallScope call("where", condition.where());
  auto [left, right] = meet(a, b, /*arithmetic=*/false);
  NodeRef test = make_cast(node_of(condition), DType::Bool);
  std::vector<NodeRef> nodes{test, left, right};
  std::vector<NodeRef> dims = broadcast_dims(nodes);
  for (NodeRef& node : nodes) node = broadcast_to(node, dims);
  return wrap(make(Op::Where, nodes));
}

// NaN stays NaN, and the bounds themselves count as inside. Of integers, a bound that none of them
// passes does nothing; one that all of them pass would have to be the result.
Tensor clamp(const Operand& x, Number low, Number high) {
  CallScope call("clamp", x.where());
  if (!(low.real() <= high.real()))
    fail(fmt::format("the bounds are {} and {}", low.text(), high.text()),
         "the lower bound comes first");
  Tensor value = wrap(as_number(node_of(x)));
  const DType dtype = value.dtype();
  if (is_float(dtype))
    return where(value < Operand(low), Operand(low),
                 where(value > Operand(high), Operand(high), value));
  if (low.kind() == Number::Kind::Float) low = std::ceil(low.real());
  if (high.kind() == Number::Kind::Float) high = std::floor(high.real());
  if (fits(high, dtype) || high.real() < 0)
    value = where(value > Operand(high), Operand(high), value);
  if (fits(low, dtype) || low.real() > 0) value = where(value < Operand(low), Operand(low), value);
  return value;
}

// As PyTorch: NaN, in x or in a bound, stays NaN, and x counts where it equals a bound.
Tensor clamp(const Operand& x, const Tensor& low, const Tensor& high) {
  CallScope call("clamp", x.where());
  Tensor value = wrap(as_number(node_of(x)));
  auto unless = [&](const Tensor& beyond, const Tensor& bound) {
    return where(beyond | is_nan(bound), bound, value);
  };
  if (low.defined()) value = unless(value < low, low);
  if (high.defined()) value = unless(value > high, high);
  return value;
}

Tensor abs(const Operand& x) {
  CallScope call("abs", x.where());
  return wrap(make(Op::Abs, {as_number(node_of(x))}));
}

// -1, 0 or 1; NaN stays NaN. It is flat, so nothing is differentiated through it.
Tensor sign(const Operand& x) {
  CallScope call("sign", x.where());
  Tensor value = wrap(as_number(node_of(x)));
  Tensor upper = where(value > 0, 1, where(value == 0, 0, value));
  return gradient_stopped(is_unsigned(value.dtype()) ? upper : where(value < 0, -1, upper));
}

Tensor exp(const Operand& x) { return real("exp", Op::Exp, x); }
Tensor exp2(const Operand& x) { return real("exp2", Op::Exp2, x); }
Tensor log(const Operand& x) { return real("log", Op::Log, x); }
Tensor log2(const Operand& x) { return real("log2", Op::Log2, x); }
Tensor log10(const Operand& x) { return real("log10", Op::Log10, x); }
Tensor log1p(const Operand& x) { return real("log1p", Op::Log1p, x); }
Tensor expm1(const Operand& x) { return real("expm1", Op::Expm1, x); }
Tensor sin(const Operand& x) { return real("sin", Op::Sin, x); }
Tensor cos(const Operand& x) { return real("cos", Op::Cos, x); }
Tensor sinh(const Operand& x) { return real("sinh", Op::Sinh, x); }
Tensor cosh(const Operand& x) { return real("cosh", Op::Cosh, x); }
Tensor tanh(const Operand& x) { return real("tanh", Op::Tanh, x); }
Tensor asinh(const Operand& x) { return real("asinh", Op::Asinh, x); }
Tensor erf(const Operand& x) { return real("erf", Op::Erf, x); }
Tensor erfc(const Operand& x) { return real("erfc", Op::Erfc, x); }
Tensor sqrt(const Operand& x) { return real("sqrt", Op::Sqrt, x); }

Tensor tan(const Operand& x) {
  CallScope call("tan", x.where());
  return sin(x) / cos(x);
}
Tensor rsqrt(const Operand& x) {
  CallScope call("rsqrt", x.where());
  return 1.0 / sqrt(x);
}
Tensor reciprocal(const Operand& x) {
  CallScope call("reciprocal", x.where());
  return 1.0 / x;
}
Tensor square(const Operand& x) {
  CallScope call("square", x.where());
  return x * x;
}

Tensor floor(const Operand& x) { return rounding("floor", Op::Floor, x); }
Tensor ceil(const Operand& x) { return rounding("ceil", Op::Ceil, x); }
Tensor trunc(const Operand& x) { return rounding("trunc", Op::Trunc, x); }
Tensor round(const Operand& x) { return rounding("round", Op::Round, x); }

Tensor is_nan(const Operand& x) {
  CallScope call("is_nan", x.where());
  return x != x;  // NOLINT(misc-redundant-expression) NaN is not itself
}
Tensor is_inf(const Operand& x) {
  CallScope call("is_inf", x.where());
  return wrap(make(Op::Abs, {as_float(node_of(x))})) == kInfinity;
}
Tensor is_finite(const Operand& x) {
  CallScope call("is_finite", x.where());
  return wrap(make(Op::Abs, {as_float(node_of(x))})) < kInfinity;
}

Tensor cast(const Operand& x, DType dtype) {
  CallScope call("cast", x.where());
  check_storable(dtype);
  return wrap(make_cast(node_of(x), dtype));
}

Tensor bitcast(const Operand& x, DType dtype) {
  CallScope call("bitcast", x.where());
  check_storable(dtype);
  NodeRef node = node_of(x);
  bool same_size =
      byte_size(dtype) == byte_size(node->dtype) && is_bool(dtype) == is_bool(node->dtype);
  if (!same_size)
    fail(fmt::format("{} and {} differ in size", anneal::name(node->dtype), anneal::name(dtype)),
         "bits can be read as another dtype of the same size only; use cast to convert values");
  return wrap(make_bitcast(node, dtype));
}

Tensor stop_gradient(const Operand& x) {
  CallScope call("stop_gradient", x.where());
  return wrap_new(make(Op::StopGradient, {node_of(x)}));
}

Tensor named(const Operand& x, std::string_view name) {
  CallScope call("named", x.where());
  return wrap(make_named(node_of(x), name));
}

Tensor contiguous(const Operand& x) {
  CallScope call("contiguous", x.where());
  return wrap(make(Op::Contiguous, {node_of(x)}));
}

}  // namespace anneal
