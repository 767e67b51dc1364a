// What the formulas of transcendental functions of f32 share. Included by math_*.cc alone; nothing
// here decides which op becomes which formula.
#pragma once

#include <initializer_list>
#include <limits>

#include "kernel/body/formula.h"

namespace anneal::math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline constexpr double kLog2E = 0x1.715476p+0;
inline constexpr double kLn2 = 0x1.62e430p-1;  // f32's; 1.9e-9 too large
// ln 2 in two parts, of which the first times the exponent of an f32 is exact.
inline constexpr double kLn2High = 0x1.62e400p-1, kLn2Low = 0x1.7f7d1cp-20;

// Added to a number below 2^22 it leaves the nearest integer in the low bits, where they can be
// shifted into an exponent; subtracted again, that integer as a float.
inline constexpr double kToInteger = 0x1.8p23;
inline constexpr int kMantissaBits = 23;
inline constexpr double kExponentBias = 127;
// The same with room for two steps of scaling, which want n + 2 * bias in the low bits.
inline constexpr double kShift = kToInteger + 2 * kExponentBias;

// The bits of sqrt(1/2): exponents are counted from there, so that fractions lie around 1.
inline constexpr int32_t kRootHalf = 0x3f3504f3;

inline Formula integer_bits(Formula value) { return bitcast(value, DType::I32); }
inline Formula float_of_bits(Formula bits) { return bitcast(bits, DType::F32); }
inline Formula sign_bit(Formula value) {
  return integer_bits(value) & std::numeric_limits<int32_t>::min();
}

// c0 + x (c1 + x (c2 + ...))
inline Formula polynomial(Formula at, std::initializer_list<double> coefficients) {
  const double* c = coefficients.end() - 2;
  Formula sum = mul_add(at, c[1], c[0]);
  while (c != coefficients.begin()) sum = mul_add(sum, at, *--c);
  return sum;
}

// value * 2^n where shifted - kShift is n. -252 <= n <= 254.
inline Formula scaled(Formula value, Formula shifted) { return scale(value, shifted - kShift); }

// (ln(1 + f) - f) / f^2 for sqrt(1/2) <= 1 + f < sqrt(2).
inline Formula log_tail(Formula f) {
  return polynomial(f, {-0.5, 0x1.5556d8p-2, -0x1.000382p-2, 0x1.98d7f8p-3, -0x1.53824cp-3,
                        0x1.31741cp-3, -0x1.24328ep-3, 0x1.645f82p-4});
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
inline Formula exp_tail(Formula r) {
  return polynomial(r,
                    {0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123de6p-7, 0x1.6ac7f8p-10});
}

// erf(x), an odd polynomial below 1.1.
inline Formula erf_near(Formula x) {
  return mul_add(polynomial(x * x, {0x1.06eba8p-3, -0x1.812734p-2, 0x1.ce2aa6p-4, -0x1.b7cde0p-6,
                                    0x1.52ac24p-8, -0x1.9a3de0p-11, 0x1.2f80b2p-14}),
                 x, x);
}

// What a logarithm is where its argument is no positive finite number.
inline Formula with_log_specials(Formula x, Formula value) {
  Formula finite = where(x < kInfinity, value, x);  // infinity and NaN are their own logarithms
  return where(x == 0, -kInfinity, where(x < 0, kNan, finite));
}

// ---- The formulas, by file

// math_near_zero.cc: what keeps its digits where 1 + x or 1 - erf(x) would lose them
Formula log1p_formula(Formula argument);
Formula expm1_formula(Formula argument);
Formula sinh_formula(Formula argument);
Formula cosh_formula(Formula argument);
Formula asinh_formula(Formula argument);
Formula erfc_formula(Formula argument);
Formula atan2_formula(Formula y, Formula x);

}  // namespace anneal::math
