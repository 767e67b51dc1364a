// Functions of f32 that keep their digits where the obvious formula loses them: ln(1 + x) and
// e^x - 1 near 0, 1 - erf(x) far from it; and the two inverse functions that the others are made
// of. As in math_rules.cc there are no branches, and the errors stated are maxima over every f32.
#include "kernel/body/math_formulas.h"

namespace anneal::math {
namespace {

// 1 + x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), of which only e is taken from the rounded
// sum: f = x 2^-e + (2^-e - 1) has one rounding. Four times as much, since 2^-128 is no normal
// number. Right for infinity too, not for what ln(1 + x) is no number of.
Formula log1p_of_valid(Formula x) {
  Formula exponent = (integer_bits(x + 1) - kRootHalf) >> kMantissaBits;
  Formula four = float_of_bits((kExponentBias + 2 - exponent) << kMantissaBits);  // 4 * 2^-e
  Formula f = mul_add(x, four, four - 4) * 0.25;
  return mul_add(cast(exponent, DType::F32), kLn2, mul_add(f * f, log_tail(f), f));
}

// e^x / 2 = 2^(n - 1) e^r for x >= 0: infinite only where the hyperbolic functions are.
Formula half_exp(Formula x) {
  Formula v = at_most(x, 90);
  Formula shifted = mul_add(v, kLog2E, kShift - 1), n = shifted - (kShift - 1);
  Formula r = mul_add(n, -kLn2Low, mul_add(n, -kLn2High, v));
  return scaled(mul_add(mul_add(exp_tail(r), r, 1), r, 1), shifted);
}

// x's sign on what is never negative.
Formula with_sign_of(Formula x, Formula size) {
  return float_of_bits(integer_bits(size) | sign_bit(x));
}

}  // namespace

// 1.8 ulp.
Formula log1p_formula(Formula argument) {
  Formula value = with_log_specials(argument + 1, log1p_of_valid(argument));
  return where(argument == 0, argument, value);  // -0 stays -0
}

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1). Halved where 2^n may overflow; with n = 0, where a denormal
// would lose by that, it is e^r - 1 itself. 1.5 ulp.
Formula expm1_formula(Formula argument) {
  constexpr double kHalfStep = kToInteger + kExponentBias - 1;
  Formula v = at_most(at_least(argument, -25), 89);
  Formula shifted = mul_add(v, kLog2E, kHalfStep), n = shifted - kHalfStep;
  Formula r = mul_add(n, -kLn2Low, mul_add(n, -kLn2High, v));
  Formula near = mul_add(r * r, exp_tail(r), r);
  Formula half = float_of_bits(integer_bits(shifted) << kMantissaBits);  // 2^(n - 1)
  Formula far = mul_add(near, half, half - 0.5) * 2;
  return where(argument == 0, argument, where(n == 0, near, far));
}

// An odd polynomial below 1, else e^x / 2 - e^-x / 2. 1.7 ulp.
Formula sinh_formula(Formula v) {
  Formula square = v * v, size = abs(v);
  Formula near = mul_add(
      square * v,
      polynomial(square, {0x1.555556p-3, 0x1.1110e0p-7, 0x1.a022bcp-13, 0x1.756c1ep-19}), v);
  Formula half = half_exp(size);
  Formula far = half - half.number(0.25) / half;
  return with_sign_of(v, where(size < 1, near, far));
}

// e^x / 2 + e^-x / 2. 1.4 ulp.
Formula cosh_formula(Formula v) {
  Formula half = half_exp(abs(v));
  return half + half.number(0.25) / half;
}

// An odd polynomial below sqrt(1/2), else ln(1 + t) with t = |x| + x^2 / (1 + sqrt(x^2 + 1)), which
// is 2 |x| long before x^2 overflows. 1.7 ulp.
Formula asinh_formula(Formula v) {
  constexpr double kFar = 0x1p30;
  Formula square = v * v, size = abs(v);
  Formula near = mul_add(square * v,
                         polynomial(square, {-0x1.555514p-3, 0x1.331e6ap-4, -0x1.6b7b78p-5,
                                             0x1.d4c7b6p-6, -0x1.09bb50p-6, 0x1.5b46b0p-8}),
                         v);
  Formula more = size + square / (sqrt(square + 1) + 1), is_far = kFar < size;
  Formula log = log1p_of_valid(where(is_far, size, more)) + where(is_far, size.number(kLn2), 0);
  return with_sign_of(v, where(size < 0x1.6a09e6p-1, near, log));
}

// atan(q) of the smaller over the larger, an odd polynomial up to 1; the octants add it to a
// multiple of pi / 2 or take it away. Equal ones have the quotient 1, infinities too, and zeros
// 0. 1.2 ulp.
Formula atan2_formula(Formula y, Formula x) {
  // pi / 2, and what f32 lacks of it as a part of it
  constexpr double kQuarter = 0x1.921fb6p+0, kMissing = -0x1.777a5cp-25 / kQuarter;
  Formula width = abs(x), height = abs(y), is_steep = width < height;
  Formula large = where(is_steep, height, width), small = where(is_steep, width, height);
  Formula q = where(small == large, where(large == 0, large, 1), small / large), square = q * q;
  Formula is_left = integer_bits(x) < 0;  // -0 too
  Formula from = where(is_steep, kQuarter, where(is_left, q.number(2 * kQuarter), 0));
  Formula turn = with_sign_of(where(is_steep, -x, x), q);
  // What the sum rounds away is exact: `from` is 0 or the larger of the two.
  Formula sum = from + turn, low = mul_add(from, kMissing, (from - sum) + turn);
  Formula tail = polynomial(
      square, {-0x1.55553ep-2, 0x1.9991e4p-3, -0x1.242088p-3, 0x1.c08c74p-4, -0x1.5809aap-4,
               0x1.da2c02p-5, -0x1.fd8144p-6, 0x1.642696p-7, -0x1.d358bcp-10});
  return with_sign_of(y, sum + mul_add(square * turn, tail, low));
}

// 1 - erf(x) near 0. Elsewhere e^-x^2 R(x) / (1 + 2x) for x >= 0, where R is a polynomial of
// (x - 2) / (x + 2): that takes 0 .. 10.2, beyond which nothing is left, to where a polynomial
// fits. 2.0 ulp.
Formula erfc_formula(Formula v) {
  Formula size = abs(v), x = at_most(size, 10.2);
  // Quotients with what their roundings left over.
  Formula divisor = x + 2, inverse = divisor.number(1) / divisor, above = x - 2;
  Formula rounded = above * inverse;
  Formula q = mul_add(inverse, mul_add(-rounded, divisor, above), rounded);
  Formula p = polynomial(q, {0x1.1ba03ap-2, -0x1.7bf5e2p-4, -0x1.5408aap-3, 0x1.4ff974p-3,
                             -0x1.bbfc0ep-5, -0x1.06c354p-7, 0x1.1a6c56p-7, 0x1.392c60p-10,
                             -0x1.4a1356p-10, -0x1.29ea62p-12, 0x1.22733ap-14});  // R - 1
  Formula weight = mul_add(x, 2, 1), weight_low = mul_add(x, 2, 1 - weight);
  Formula share = weight.number(1) / weight, ratio = mul_add(p, share, share);
  Formula missing = mul_add(-ratio, weight_low, mul_add(-ratio, weight, 1) + p);
  ratio = mul_add(missing, share, ratio);
  // e^-x^2 = 2^n e^r, r with what the square rounded away.
  Formula square = x * x, shifted = mul_add(-square, kLog2E, kShift), n = shifted - kShift;
  Formula r = mul_add(n, -kLn2Low, mul_add(n, -kLn2High, -square)) + mul_add(-x, x, square);
  Formula far = scaled(mul_add(ratio, mul_add(r * r, exp_tail(r), r), ratio), shifted);
  return where(size < 0.4, 1 - erf_near(v), where(v < 0, 2 - far, far));
}

}  // namespace anneal::math
