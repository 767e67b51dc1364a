// Functions of real numbers that are formulas over ops, inverse ones above all. Each is as exact as
// the ops it is made of, and its derivative is that of the formula, at zero and at the ends too.
#include <limits>

#include <anneal/tensor.h>

#include "tensor/lift.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

template <typename Function>
Tensor in_wide(const char* name, const Operand& x, Function function) {
  CallScope call(name, x.where());
  return cast(function(widen(x)), real_dtype(x));
}

// sqrt(1 - x^2) without the rounding of x^2, which would be all that is left near 1; two roots,
// since the slope of one would be infinity times 0 there.
Tensor other_leg(const Tensor& x) { return sqrt(1.0 - x) * sqrt(1.0 + x); }

}  // namespace

Tensor atan(const Operand& x) {
  CallScope call("atan", x.where());
  return atan2(x, 1.0);
}

Tensor asin(const Operand& x) {
  return in_wide("asin", x, [](const Tensor& v) { return atan2(v, other_leg(v)); });
}

Tensor acos(const Operand& x) {
  return in_wide("acos", x, [](const Tensor& v) { return atan2(other_leg(v), v); });
}

// cosh(2u) = 1 + 2 sinh(u)^2, in which x - 1 is exact near 1 and nothing is squared.
Tensor acosh(const Operand& x) {
  return in_wide("acosh", x, [](const Tensor& v) { return 2.0 * asinh(sqrt((v - 1.0) * 0.5)); });
}

// The two terms have the same sign: nothing cancels.
Tensor atanh(const Operand& x) {
  return in_wide("atanh", x, [](const Tensor& v) { return (log1p(v) - log1p(-v)) * 0.5; });
}

// The larger plus ln(1 + e^-|a - b|). Which is larger is asked of the difference, so that where
// they are equal derivatives are those of one branch. Equal infinities have no difference: it
// counts as 0, and the first as the larger.
Tensor logaddexp(const Operand& a, const Operand& b) {
  CallScope call("logaddexp", a.where());
  const DType dtype = real_dtype(meeting_dtype(std::array{&a, &b}));
  auto [left, right] = meet_in(wide_dtype(dtype), a, b);
  const Tensor x = wrap(left), y = wrap(right);
  const Tensor difference = where(is_inf(x) & (x == y), 0, x - y);
  const Tensor is_first = difference >= 0;
  const Tensor small = exp(where(is_first, -difference, difference));
  return cast(where(is_first, x, y) + log1p(small), dtype);
}

}  // namespace anneal
