// The transcendental functions of f32 as arithmetic, without branches: what one lane needs, all do.
// Coefficients are minimax fits (tools/minimax.py), lowest power first; the errors stated are
// maxima over every f32, which tests/math_rules_test.cc measures again.
#include "kernel/body/math_rules.h"

#include <limits>

#include "kernel/body/math_formulas.h"

namespace anneal {
namespace {

using namespace captures;
using namespace math;

// ---- exponentials

// In two steps, so that only the last one rounds where the result is denormal.
NodeRef scaled_in_two_steps(const Match& m) {
  Formula value(m[x]), bits = integer_bits(Formula(m[y])), half = bits >> 1, rest = bits - half;
  return (value * float_of_bits(half << kMantissaBits) * float_of_bits(rest << kMantissaBits)).node;
}

// e^x = 2^n e^r with |r| <= ln(2) / 2. 0.90 ulp. From 89 on the result is infinite, to -104 zero.
Formula exp_formula(Formula argument) {
  Formula v = at_most(at_least(argument, -104), 89);
  Formula shifted = mul_add(v, kLog2E, kShift), n = shifted - kShift;
  Formula r = mul_add(n, -kLn2Low, mul_add(n, -kLn2High, v));
  return scaled(mul_add(mul_add(exp_tail(r), r, 1), r, 1), shifted);
}

Formula exp2_polynomial(Formula r) {
  return polynomial(r, {1, 0x1.62e430p-1, 0x1.ebfb94p-3, 0x1.c6af9ep-5, 0x1.3b681ap-7,
                        0x1.5ef4dcp-10, 0x1.1794f4p-13});
}

// 2^x = 2^n 2^r with |r| <= 1/2. 0.92 ulp.
Formula exp2_formula(Formula argument) {
  Formula v = at_most(at_least(argument, -151), 129);
  Formula shifted = v + kShift, r = v - (shifted - kShift);
  return scaled(exp2_polynomial(r), shifted);
}

// ---- logarithms

// x = 2^exponent (1 + fraction) with sqrt(1/2) <= 1 + fraction < sqrt(2), for positive finite x.
struct Parts {
  Formula exponent, fraction;
};

Parts split(Formula x) {
  constexpr int32_t kMantissa = (1 << kMantissaBits) - 1;
  // Denormals are made normal first; subtracting from the bits takes it out of the exponent again.
  Formula denormal = x < 0x1p-126;
  Formula normal = integer_bits(where(denormal, x * 0x1p23, x));
  Formula origin =
      where(denormal, normal.number(-kRootHalf - (kMantissaBits << kMantissaBits)), -kRootHalf);
  Formula above = normal + origin;
  return {cast(above >> kMantissaBits, DType::F32),
          float_of_bits((above & kMantissa) + kRootHalf) - 1};
}

// ln(1 + f) = f + f^2 P(f). 1.13 ulp.
Formula log_formula(Formula argument) {
  auto [exponent, f] = split(argument);
  return with_log_specials(argument, mul_add(exponent, kLn2, mul_add(f * f, log_tail(f), f)));
}

// log2(1 + f) = f / ln 2 + f P(f), where P begins with what f32's 1 / ln 2 lacks.
Formula log2_formula(Formula argument) {
  auto [exponent, f] = split(argument);
  Formula tail =
      polynomial(f, {-0x1.34f202p-26, -0x1.715470p-1, 0x1.ec73d6p-2, -0x1.715c4ep-2, 0x1.26d386p-2,
                     -0x1.e95be6p-3, 0x1.b9c8f0p-3, -0x1.a87cdap-3, 0x1.01b6fep-3});
  return with_log_specials(argument, mul_add(f, kLog2E, tail * f) + exponent);
}

// The same to base 10. log10(2) is in two parts, of which the first times the exponent is exact.
Formula log10_formula(Formula argument) {
  constexpr double kLog10E = 0x1.bcb7b2p-2, kLog2High = 0x1.344000p-2, kLog2Low = 0x1.3509f8p-18;
  auto [exponent, f] = split(argument);
  Formula tail =
      polynomial(f, {-0x1.6e2cd2p-26, -0x1.bcb7aap-3, 0x1.287c68p-3, -0x1.bcc124p-4, 0x1.630196p-4,
                     -0x1.269f9ap-4, 0x1.09fb24p-4, -0x1.ff2256p-5, 0x1.364790p-5});
  Formula low = mul_add(exponent, kLog2Low, tail * f);
  return with_log_specials(argument, mul_add(exponent, kLog2High, mul_add(f, kLog10E, low)));
}

// ---- powers

// Two floats that add up to a number with twice the digits.
struct Pair {
  Formula high, low;
};

// log2(1 + f) = 2 / ln(2) artanh(q), q = f / (2 + f). A power magnifies the relative error of its
// logarithm up to 128 ln 2 times, so this one must be right to 2^-32.
Pair log2_pair(Formula exponent, Formula f) {
  constexpr double kScale = 0x1.715476p+1, kScaleLow = 0x1.4ae0c0p-25;  // 2 / ln 2
  // q and what its roundings left over
  Formula divisor = f + 2, divisor_low = f - (divisor - 2), inverse = divisor.number(1) / divisor;
  Formula q = f * inverse;
  Formula missing = mul_add(-q, divisor_low, mul_add(-q, divisor, f)) * inverse;
  // artanh(q + d) is artanh(q) + d (1 + q^2 + ...)
  Formula square = q * q;
  Formula missing_log = mul_add(missing, square, missing);
  Formula tail = polynomial(square, {0x1.ec709ep-1, 0x1.2776e0p-1, 0x1.a5d048p-2, 0x1.58901ep-2});
  Formula cubic = square * tail, cubic_low = mul_add(square, tail, -cubic);
  // 2 / ln(2) q + cubic q, rounded, and all that is left over
  Formula linear = q * kScale, linear_low = mul_add(q, kScale, -linear);
  Formula low =
      mul_add(q, cubic_low, mul_add(missing_log, kScale, mul_add(q, kScaleLow, linear_low)));
  Formula high = mul_add(q, cubic, linear);
  Formula high_low = mul_add(q, cubic, linear - high) + low;
  Formula sum = exponent + high;
  return {sum, (high - (sum - exponent)) + high_low};
}

// |a|^b = 2^(b log2 |a|), with the sign and the special values of C's pow. 1.5 ulp.
NodeRef pow_formula(const Match& m) {
  constexpr double kDecisive = 0x1p40;  // an exponent that takes every base but 1 to 0 or infinity
  Formula a(m[x]), b(m[y]), size = abs(a);
  auto [exponent, fraction] = split(size);
  Pair log = log2_pair(exponent, fraction);
  Formula finite = size < kInfinity;
  Formula log_high = where(size == 0, -kInfinity, where(finite, log.high, size));

  Formula power = at_most(at_least(b, -kDecisive), kDecisive);
  Formula product = power * log_high;
  Formula product_low = mul_add(power, log.low, mul_add(power, log_high, -product));
  Formula bounded = at_most(at_least(product, -152), 129);
  Formula shifted = bounded + kShift;
  Formula r = (bounded - (shifted - kShift)) +
              where(bounded == product, product_low, 0);  // beyond the bounds it may be NaN
  Formula result = scaled(exp2_polynomial(r), shifted);

  // Halves of odd numbers are no integers. Infinities are even.
  Formula half = b * 0.5, fractional = floor(b) < b, half_fractional = floor(half) < half;
  Formula sign = sign_bit(a);
  Formula odd_sign = where(fractional, 0, where(half_fractional, sign, 0));
  Formula with_sign = float_of_bits(integer_bits(result) ^ odd_sign);
  Formula invalid = ((a < 0) & finite) & fractional;
  return where((b == 0) | (a == 1), 1, where(invalid, kNan, with_sign)).node;
}

// Unlike its power, the root of -0 is -0 and that of -inf is NaN.
NodeRef pow_half(const Match& m) {
  Formula a(m[x]);
  return sqrt(where(a == -kInfinity, kInfinity, a + 0)).node;
}

// ---- circular functions

// |x| 2/pi = quadrant + turn with |turn| <= 5/8; `quadrant` is right modulo 4. In f64, since the
// nearest multiple of pi/2 may agree with x in 30 bits more than f32 has. Where x is so large that
// the leading digits of 2/pi make multiples of 4, the constants leave those digits out: each pair
// serves 26 binary orders of magnitude.
struct Turn {
  Formula quadrant, radians;
};

Turn reduce_angle(Formula size) {
  constexpr double kToInteger64 = 0x1.8p52, kHalfPi = 0x1.921fb54442d18p+0;
  Formula wide = cast(size, DType::F64);
  auto by_size = [&](double to50, double to76, double to102, double rest) {
    return where(size < 0x1p50, to50,
                 where(size < 0x1p76, to76, where(size < 0x1p102, wide.number(to102), rest)));
  };
  Formula high = by_size(0x1.45f306dc9c883p-1, 0x1.b9391054a7f0ap-26, 0x1.529fc2757d1f5p-52,
                         0x1.d5f47d4d37703p-78);
  Formula low = by_size(-0x1.6b01ec5417056p-55, -0x1.505c1596447e5p-81, 0x1.a6ee06db14acdp-107,
                        0x1.b6295993c4390p-132);
  Formula turns = wide * high;
  Formula turns_low = mul_add(wide, low, mul_add(wide, high, -turns));
  Formula shifted = (turns + turns_low) + kToInteger64;
  Formula turn = (turns - (shifted - kToInteger64)) + turns_low;
  return {cast(bitcast(shifted, DType::I64), DType::I32), cast(turn * kHalfPi, DType::F32)};
}

// sin r in even quadrants, cos r in odd ones, negative in the last two of four. `sign` has a sign
// bit and anything below it.
Formula circular(Formula quadrant, Formula r, Formula sign) {
  Formula square = r * r;
  Formula sine = mul_add(
      square * r,
      polynomial(square, {-0x1.555556p-3, 0x1.111142p-7, -0x1.a02344p-13, 0x1.6e8840p-19}), r);
  Formula cosine = polynomial(
      square, {1, -0.5, 0x1.555556p-5, -0x1.6c1718p-10, 0x1.a03058p-16, -0x1.27382cp-22});
  Formula value = where((quadrant & 1) == 0, sine, cosine);
  return float_of_bits(integer_bits(value) ^ (sign & std::numeric_limits<int32_t>::min()));
}

// The same for devices without f64. x is an integer of 24 bits times a power of two; times the 96
// digits of 2/pi that decide about quadrant and turn, of which 2 stand before the point, that is 64
// digits that are right and 32 that are dropped.
Turn reduce_angle_by_digits(Formula size) {
  // The digits, after a word of zeros for angles below 1.
  constexpr uint32_t kDigits[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                  0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  constexpr int kFirst = 6;  // digits of zeros before those that an angle of exponent -1 needs
  constexpr double kTurn = 0x1.921fb6p+0 * 0x1p-62, kTurnLow = -0x1.777a5cp-25 * 0x1p-62;
  constexpr double kSmall = 0.75;
  Formula bits = bitcast(size, DType::U32);
  Formula mantissa = (bits & 0x7fffff) | 0x800000;
  // Smaller ones are not turned at all, so what comes of them does not matter.
  Formula at = at_least(cast(bits >> kMantissaBits, DType::I32) - (kExponentBias - 1 - kFirst), 0);
  Formula word = at >> 5, shift = cast(at & 31, DType::U64);
  auto digits = [&](size_t first) {  // 32 of them from the word on
    Formula chosen = mantissa.number(kDigits[first]);
    for (size_t i = 1; i < 5; ++i)
      chosen = where(word == static_cast<double>(i), mantissa.number(kDigits[first + i]), chosen);
    return cast(chosen, DType::U64);
  };
  Formula words[] = {digits(0), digits(1), digits(2), digits(3)};
  auto window = [&](size_t i) { return ((words[i] << 32 | words[i + 1]) << shift) >> 32; };
  Formula factor = cast(mantissa, DType::U64);
  Formula turns = (factor * window(0) << 32) + factor * window(1) + (factor * window(2) >> 32);
  Formula nearest = (turns + 0x1p61) >> 62;
  Formula rest = bitcast(turns - (nearest << 62), DType::I64);
  Formula small = size < kSmall;
  // What is no number is not an angle either.
  Formula turn = cast(rest, DType::F32);
  Formula radians = where(size < kInfinity, mul_add(turn, kTurn, turn * kTurnLow), kNan);
  return {where(small, cast(nearest, DType::I32) * 0, cast(nearest, DType::I32)),
          where(small, size, radians)};
}

using Reduction = Turn (*)(Formula size);

template <Reduction reduced>
Formula sin_formula(Formula v) {
  auto [quadrant, r] = reduced(abs(v));
  return circular(quadrant, r, (quadrant << 30) ^ integer_bits(v));
}

template <Reduction reduced>
Formula cos_formula(Formula v) {
  auto [quadrant, r] = reduced(abs(v));
  Formula next = quadrant + 1;  // cos x = sin(x + pi/2)
  return circular(next, r, next << 30);
}

// ---- bounded odd functions

// An odd polynomial below 0.7, else 1 - 2 / (e^2x + 1), which is 1 from 9.02 on. 1.5 ulp.
Formula tanh_formula(Formula v) {
  constexpr double kOneStep = kToInteger + kExponentBias;
  Formula square = v * v;
  Formula near = mul_add(square * v,
                         polynomial(square, {-0x1.5554f6p-2, 0x1.10fb0ap-3, -0x1.b6c360p-5,
                                             0x1.4939aap-6, -0x1.50e232p-8}),
                         v);
  // e^2x = 2^n e^2r. One constant for ln 2 / 2 is enough: the larger n, the less e^2x matters.
  Formula sign = sign_bit(v), size = abs(v);
  Formula bounded = at_most(size, 9.2);
  Formula shifted = mul_add(bounded, 2 * kLog2E, kOneStep), n = shifted - kOneStep;
  Formula r = mul_add(n, -kLn2 / 2, bounded);
  Formula power =
      polynomial(r, {1, 0x1.fffff6p+0, 0x1.fffdc4p+0, 0x1.555a8ap+0, 0x1.573accp-1, 0x1.0f9924p-2});
  Formula scale = float_of_bits(integer_bits(shifted) << kMantissaBits);
  Formula divisor = mul_add(power, scale, 1);
  Formula far = 1 - divisor.number(2) / divisor;
  // The sign goes to both: the polynomial answers +0 for -0.
  return float_of_bits(integer_bits(where(size < 0.7, near, far)) | sign);
}

// An odd polynomial below 1.1; else 1 - q^4, where the polynomial q is near erfc(x)^(1/4): far
// flatter than erfc, and the fourth power brings its error down where erfc is small. 1.5 ulp.
Formula erf_formula(Formula v) {
  Formula near = erf_near(v);
  Formula sign = sign_bit(v), size = abs(v);
  Formula root =
      polynomial(at_most(size, 4), {0x1.0153fep+0, -0x1.3aee98p-2, -0x1.0c3fb8p-4, -0x1.8e2064p-5,
                                    0x1.0ab672p-4, -0x1.66c1b8p-6, 0x1.a0cfe6p-9, -0x1.704792p-13});
  Formula root2 = root * root;
  Formula far = mul_add(-root2, root2, 1);
  return float_of_bits(integer_bits(where(size < 1.1, near, far)) | sign);
}

bool is_f32(NodeRef node) { return node->dtype == DType::F32; }

template <Formula (*formula)(Formula)>
NodeRef apply(const Match& m) {
  return formula(Formula(m[x])).node;
}

}  // namespace

const RuleSet kMathRules{
    "math",
    {
        {"exp", op(Op::Exp, x).when(is_f32), apply<exp_formula>},
        {"exp2", op(Op::Exp2, x).when(is_f32), apply<exp2_formula>},
        {"log", op(Op::Log, x).when(is_f32), apply<log_formula>},
        {"log2", op(Op::Log2, x).when(is_f32), apply<log2_formula>},
        {"log10", op(Op::Log10, x).when(is_f32), apply<log10_formula>},
        {"log1p", op(Op::Log1p, x).when(is_f32), apply<log1p_formula>},
        {"expm1", op(Op::Expm1, x).when(is_f32), apply<expm1_formula>},
        {"sin", op(Op::Sin, x).when(is_f32), apply<sin_formula<reduce_angle>>},
        {"cos", op(Op::Cos, x).when(is_f32), apply<cos_formula<reduce_angle>>},
        {"tanh", op(Op::Tanh, x).when(is_f32), apply<tanh_formula>},
        {"sinh", op(Op::Sinh, x).when(is_f32), apply<sinh_formula>},
        {"cosh", op(Op::Cosh, x).when(is_f32), apply<cosh_formula>},
        {"asinh", op(Op::Asinh, x).when(is_f32), apply<asinh_formula>},
        {"atan2", op(Op::Atan2, x, y).when(is_f32),
         [](const Match& m) { return atan2_formula(Formula(m[x]), Formula(m[y])).node; }},
        {"erf", op(Op::Erf, x).when(is_f32), apply<erf_formula>},
        {"erfc", op(Op::Erfc, x).when(is_f32), apply<erfc_formula>},

        // Powers that are a product, a quotient or a root.
        {"pow-two", op(Op::Pow, x, 2).when(is_f32),
         [](const Match& m) { return make(Op::Mul, {m[x], m[x]}); }},
        {"pow-three", op(Op::Pow, x, 3).when(is_f32),
         [](const Match& m) { return make(Op::Mul, {make(Op::Mul, {m[x], m[x]}), m[x]}); }},
        {"pow-minus-one", op(Op::Pow, x, -1).when(is_f32),
         [](const Match& m) { return make(Op::Div, {make_const_like(m[x], 1), m[x]}); }},
        {"pow-half", op(Op::Pow, x, 0.5).when(is_f32), pow_half},
        {"pow", op(Op::Pow, x, y).when(is_f32), pow_formula},
    }};

const RuleSet kAngleRules{
    "angles",
    {
        {"sin", op(Op::Sin, x).when(is_f32), apply<sin_formula<reduce_angle_by_digits>>},
        {"cos", op(Op::Cos, x).when(is_f32), apply<cos_formula<reduce_angle_by_digits>>},
    }};

const RuleSet kScaleRules{
    "scale", {{"two-steps", op(Op::Scale, x, op(Op::Add, y, -kShift)), scaled_in_two_steps}}};

std::vector<NodeRef> lower_math(std::span<const NodeRef> roots, RewriteLog* log,
                                const DisabledRules& disabled, MathAbilities abilities) {
  std::vector<const RuleSet*> sets{&kNarrowFloatRules};
  if (!abilities.f64) sets.push_back(&kAngleRules);
  sets.push_back(&kMathRules);
  std::vector<NodeRef> lowered = Rewriter(sets, Direction::BottomUp, disabled, log).run(roots);
  if (abilities.scale) return lowered;
  return Rewriter({&kScaleRules}, Direction::BottomUp, disabled, log).run(lowered);
}

}  // namespace anneal
