// The meaning of every elementwise op against arithmetic that shares no code with it: 128-bit
// integers, quadruple and native floats.
#include "ir/semantics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "interpreter_bench.h"
#include "ir/float_formats.h"
#include "ir/index.h"
#include "ir/infer.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

__extension__ using Wide = __int128;
#if LDBL_MANT_DIG >= 113
using Quad = long double;
#else
__extension__ using Quad = __float128;
#endif

// Grids have many cases: they count what is wrong and show the first.
class Sweep {
 public:
  void expect(Scalar got, Scalar want, Op op, Scalar a, Scalar b) {
    ++cases_;
    if (got == want || wrong_++ != 0) return;
    first_ = std::string(name(op)) + " " + std::string(name(a.dtype())) + " " + to_text(a) + ", " +
             to_text(b) + " gave " + to_text(got) + ", wanted " + to_text(want);
  }
  void finish(size_t least_cases) const {
    INFO(first_);
    CHECK(wrong_ == 0);
    CHECK(cases_ >= least_cases);
  }

 private:
  size_t cases_ = 0, wrong_ = 0;
  std::string first_;
};

Scalar eval(Op op, DType dtype, std::initializer_list<Scalar> sources) {
  return evaluate(op, dtype, std::span(sources.begin(), sources.size()));
}

// ---- integers

Wide exact(Scalar value) {
  return is_unsigned(value.dtype()) ? Wide(value.bits()) : Wide(value.as_int());
}

int width(DType dtype) { return static_cast<int>(8 * byte_size(dtype)); }

Scalar wrapped(DType dtype, Wide value) {
  const Wide modulus = Wide(1) << width(dtype);
  value = (value % modulus + modulus) % modulus;
  if (is_signed(dtype) && value >= modulus / 2) value -= modulus;
  return Scalar::of_int(dtype, static_cast<int64_t>(value));
}

Wide floored(Wide a, Wide b) {
  Wide quotient = a / b;
  while (quotient * b > a && b > 0) --quotient;
  while (quotient * b < a && b < 0) --quotient;
  return quotient;
}

// Bit by bit, of two's complement.
Wide bitwise(Wide a, Wide b, int bits, const std::function<bool(bool, bool)>& rule) {
  Wide result = 0;
  for (int i = 0; i < bits; ++i)
    if (rule((a >> i) & 1, (b >> i) & 1)) result |= Wide(1) << i;
  return result;
}

Wide halved(Wide a, Wide times) {
  for (Wide i = 0; i < times && i < 100; ++i) a = floored(a, 2);
  return a;
}

Wide doubled(Wide a, Wide times, int bits) {
  for (Wide i = 0; i < times; ++i) a = a * 2 % (Wide(1) << bits);
  return a;
}

// Modulo 2^bits, by halves: the product of two 64-bit numbers may not fit a signed 128-bit one.
Wide product_of_halves(Wide a, Wide b, int bits) {
  const Wide modulus = Wide(1) << bits, half = Wide(1) << (bits / 2);
  a = (a + modulus) % modulus;
  b = (b + modulus) % modulus;
  const Wide cross = (a / half) * (b % half) % half + (b / half) * (a % half) % half;
  return (a % half) * (b % half) + cross * half;
}

struct IntCase {
  Op op;
  std::function<Wide(Wide a, Wide b, int bits)> expected;
};

const IntCase kIntCases[] = {
    {Op::Neg, [](Wide a, Wide, int) { return 0 - a; }},
    {Op::Abs, [](Wide a, Wide, int) { return a > 0 ? a : 0 - a; }},
    {Op::Add, [](Wide a, Wide b, int) { return a + b; }},
    {Op::Mul, product_of_halves},
    {Op::FloorDiv, [](Wide a, Wide b, int) { return b == 0 ? Wide(0) : floored(a, b); }},
    {Op::Mod, [](Wide a, Wide b, int) { return b == 0 ? Wide(0) : a - floored(a, b) * b; }},
    {Op::Max, [](Wide a, Wide b, int) { return std::max(a, b); }},
    {Op::Min, [](Wide a, Wide b, int) { return std::min(a, b); }},
    {Op::And, [](Wide a, Wide b, int n) { return bitwise(a, b, n, std::logical_and<bool>()); }},
    {Op::Or, [](Wide a, Wide b, int n) { return bitwise(a, b, n, std::logical_or<bool>()); }},
    {Op::Xor, [](Wide a, Wide b, int n) { return bitwise(a, b, n, std::not_equal_to<bool>()); }},
    {Op::Shl, [](Wide a, Wide b, int n) { return b < 0 || b >= n ? Wide(0) : doubled(a, b, n); }},
    {Op::Shr, [](Wide a, Wide b, int) { return b < 0 ? Wide(0) : halved(a, b); }},
};

// The ends of a dtype, the numbers around zero, and shift counts around the width.
std::vector<Scalar> int_corners(DType dtype) {
  const Wide low = is_signed(dtype) ? -(Wide(1) << (width(dtype) - 1)) : Wide(0);
  const Wide high = low + (Wide(1) << width(dtype)) - 1;
  std::vector<Scalar> corners;
  for (Wide value : {low,
                     low + 1,
                     low / 2,
                     Wide(-8),
                     Wide(-3),
                     Wide(-2),
                     Wide(-1),
                     Wide(0),
                     Wide(1),
                     Wide(2),
                     Wide(3),
                     Wide(7),
                     Wide(width(dtype) - 1),
                     Wide(width(dtype)),
                     Wide(width(dtype) + 1),
                     Wide(100),
                     high / 2,
                     high / 2 + 1,
                     high - 1,
                     high})
    if (value >= low && value <= high) corners.push_back(wrapped(dtype, value));
  return corners;
}

// ---- floats

// A quadruple holds sums, products and quotients of doubles so closely that rounding it again gives
// what rounding the exact result once gives; the same holds of doubles and every narrower dtype.
Scalar rounded(DType dtype, Quad value) { return Scalar::of(dtype, static_cast<double>(value)); }

Quad quad(Scalar value) { return value.as_double(); }

// The integers around x: by counting in halves, for what is small enough to have a fraction.
Quad nearest_integer(Quad x, bool (*take_upper)(Quad down, Quad up, bool even)) {
  const Quad size = x < 0 ? -x : x;
  if (!(size < Quad(int64_t{1} << 53))) return x;
  Quad below = static_cast<Quad>(static_cast<int64_t>(x));
  if (below > x) below -= 1;
  if (below == x) return x;
  const bool even = static_cast<int64_t>(below) % 2 == 0;
  const Quad result = take_upper(x - below, below + 1 - x, even) ? below + 1 : below;
  return result == 0 && x < 0 ? -Quad(0) : result;
}

std::vector<Scalar> float_corners(DType dtype) {
  const FloatFormat& format = format_of(dtype);
  const double least = std::ldexp(1.0, format.min_exponent() - format.mantissa_bits);
  const double normal = std::ldexp(1.0, format.min_exponent());
  const double step = std::ldexp(1.0, -format.mantissa_bits);
  std::vector<Scalar> corners{Scalar::of(dtype, kNan)};
  for (double value : {0.0,
                       least,
                       3 * least,
                       normal - least,
                       normal,
                       0.1,
                       0.25,
                       0.5,
                       1 - step / 2,
                       1.0,
                       1 + step,
                       1.5,
                       2.0,
                       2.5,
                       3.0,
                       3.5,
                       7.0,
                       100.0,
                       largest_finite(dtype) / 2,
                       largest_finite(dtype),
                       kInf}) {
    corners.push_back(Scalar::of(dtype, value));
    corners.push_back(Scalar::of(dtype, -value));
  }
  return corners;
}

struct ExactCase {
  Op op;
  Quad (*expected)(Quad a, Quad b);
};

bool is_nan(Quad a) { return a != a; }

// Ops whose result is the exact one, rounded once. A zero result has the sign C gives it.
const ExactCase kExactCases[] = {
    {Op::Neg, [](Quad a, Quad) { return a * Quad(-1); }},
    {Op::Abs, [](Quad a, Quad) { return a < 0    ? a * Quad(-1)
                                        : a == 0 ? Quad(0)
                                                 : a; }},
    {Op::Floor,
     [](Quad a, Quad) { return nearest_integer(a, [](Quad, Quad, bool) { return false; }); }},
    {Op::Ceil,
     [](Quad a, Quad) { return nearest_integer(a, [](Quad, Quad, bool) { return true; }); }},
    {Op::Trunc,
     [](Quad a, Quad) {
       return a < 0 ? nearest_integer(
                          a, [](Quad, Quad, bool) { return true; })
                    : nearest_integer(a, [](Quad, Quad, bool) { return false; });
     }},
    {Op::Round,
     [](Quad a, Quad) {
       return nearest_integer(
           a, [](Quad down, Quad up, bool even) { return up < down || (up == down && !even); });
     }},
    {Op::Add, [](Quad a, Quad b) { return a + b; }},
    {Op::Mul, [](Quad a, Quad b) { return a * b; }},
    {Op::Div, [](Quad a, Quad b) { return a / b; }},
    {Op::Max, [](Quad a, Quad b) { return is_nan(a) || is_nan(b) ? Quad(kNan)
                                          : a >= b               ? a
                                                                 : b; }},
    {Op::Min, [](Quad a, Quad b) { return is_nan(a) || is_nan(b) ? Quad(kNan)
                                          : a <= b               ? a
                                                                 : b; }},
};

struct LibraryCase {
  Op op;
  long double (*expected)(long double a, long double b);
  double f64_steps;  // that libm may be off; in a narrower dtype that can only tip a rounding
};

constexpr double kRounded = 0, kOneStep = 1, kTwoSteps = 2;

const LibraryCase kLibraryCases[] = {
    {Op::Exp, [](long double a, long double) { return std::exp(a); }, kOneStep},
    {Op::Exp2, [](long double a, long double) { return std::exp2(a); }, kOneStep},
    {Op::Log, [](long double a, long double) { return std::log(a); }, kOneStep},
    {Op::Log2, [](long double a, long double) { return std::log2(a); }, kOneStep},
    {Op::Log10, [](long double a, long double) { return std::log10(a); }, kTwoSteps},
    {Op::Log1p, [](long double a, long double) { return std::log1p(a); }, kOneStep},
    {Op::Expm1, [](long double a, long double) { return std::expm1(a); }, kOneStep},
    {Op::Sinh, [](long double a, long double) { return std::sinh(a); }, kTwoSteps},
    {Op::Cosh, [](long double a, long double) { return std::cosh(a); }, kTwoSteps},
    {Op::Asinh, [](long double a, long double) { return std::asinh(a); }, kTwoSteps},
    {Op::Erfc, [](long double a, long double) { return std::erfc(a); }, kTwoSteps},
    {Op::Atan2, [](long double a, long double b) { return std::atan2(a, b); }, kOneStep},
    {Op::Sin, [](long double a, long double) { return std::sin(a); }, kOneStep},
    {Op::Cos, [](long double a, long double) { return std::cos(a); }, kOneStep},
    {Op::Tanh, [](long double a, long double) { return std::tanh(a); }, kTwoSteps},
    {Op::Erf, [](long double a, long double) { return std::erf(a); }, kOneStep},
    {Op::Pow, [](long double a, long double b) { return std::pow(a, b); }, kOneStep},
};

// Whether r is the f64 nearest to the root of x: x lies between the squares of the midpoints on
// both sides of r, which a quadruple holds exactly.
bool is_root(double x, double r) {
  const Quad below = (Quad(r) + Quad(std::nextafter(r, 0.0))) / 2;
  const Quad above = (Quad(r) + Quad(std::nextafter(r, kInf))) / 2;
  return below * below <= Quad(x) && Quad(x) <= above * above;
}

// How far apart two values of a dtype are, in steps of the dtype; huge where only one is a NaN.
double distance(Scalar a, Scalar b) {
  if (a == b) return 0;
  if (std::isnan(a.as_double()) || std::isnan(b.as_double())) return kInf;
  auto place = [](Scalar value) {
    const uint64_t code = encode(value.dtype(), std::fabs(value.as_double()));
    return std::signbit(value.as_double()) ? -static_cast<double>(code) : static_cast<double>(code);
  };
  return std::fabs(place(a) - place(b));
}

}  // namespace

// ---- elementwise ops

TEST_CASE("semantics: every elementwise op has a meaning for every dtype it accepts") {
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_elementwise(op)) continue;
    for (DType dtype : kAllDTypes) {
      if (!accepts(info(op), dtype)) continue;
      if (op == Op::Threefry && dtype != DType::U32) continue;
      CAPTURE(name(op));
      CAPTURE(name(dtype));
      std::vector<Scalar> sources(info(op).sources, Scalar::of_int(dtype, 1));
      if (op == Op::Where) sources[0] = Scalar::of_int(DType::Bool, 1);
      const DType result = info(op).type == TypeRule::Bool ? DType::Bool : dtype;
      Scalar value;
      CHECK_NOTHROW(value = evaluate(op, result, sources));
      CHECK(value.dtype() == result);
    }
  }
  CHECK_THROWS_AS(eval(Op::ReduceSum, DType::F32, {Scalar::of(DType::F32, 1)}), InternalError);
  CHECK_THROWS_AS(eval(Op::Sqrt, DType::I32, {Scalar::of(DType::I32, 1)}), InternalError);
}

TEST_CASE("semantics: integer ops are exact and wrap") {
  Sweep sweep;
  for (DType dtype : kInts)
    for (const IntCase& row : kIntCases)
      for (Scalar a : int_corners(dtype))
        for (Scalar b : int_corners(dtype)) {
          const Scalar want = wrapped(dtype, row.expected(exact(a), exact(b), width(dtype)));
          const Scalar got =
              info(row.op).sources == 1 ? eval(row.op, dtype, {a}) : eval(row.op, dtype, {a, b});
          sweep.expect(got, want, row.op, a, b);
        }
  sweep.finish(20'000);
}

TEST_CASE("semantics: comparisons order every dtype") {
  Sweep sweep;
  auto check = [&](Scalar a, Scalar b, bool less, bool equal) {
    auto truth = [](bool value) { return Scalar::of_int(DType::Bool, value); };
    sweep.expect(eval(Op::Lt, DType::Bool, {a, b}), truth(less), Op::Lt, a, b);
    sweep.expect(eval(Op::Le, DType::Bool, {a, b}), truth(less || equal), Op::Le, a, b);
    sweep.expect(eval(Op::Eq, DType::Bool, {a, b}), truth(equal), Op::Eq, a, b);
  };
  for (DType dtype : kInts)
    for (Scalar a : int_corners(dtype))
      for (Scalar b : int_corners(dtype)) check(a, b, exact(a) < exact(b), exact(a) == exact(b));
  for (DType dtype : kFloats)
    for (Scalar a : float_corners(dtype))
      for (Scalar b : float_corners(dtype)) check(a, b, quad(a) < quad(b), quad(a) == quad(b));
  for (bool a : {false, true})
    for (bool b : {false, true})
      check(Scalar::of_int(DType::Bool, a), Scalar::of_int(DType::Bool, b), !a && b, a == b);
  for (int64_t a : {kI64Min, int64_t{-1}, int64_t{0}, kI64Max})
    for (int64_t b : {kI64Min, int64_t{-1}, int64_t{0}, kI64Max})
      check(Scalar::of_int(DType::Index, a), Scalar::of_int(DType::Index, b), a < b, a == b);
  sweep.finish(10'000);
}

TEST_CASE("semantics: bool ops are logical") {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      const Scalar x = Scalar::of_int(DType::Bool, a), y = Scalar::of_int(DType::Bool, b);
      CHECK(eval(Op::And, DType::Bool, {x, y}).bits() == (a && b));
      CHECK(eval(Op::Or, DType::Bool, {x, y}).bits() == (a || b));
      CHECK(eval(Op::Xor, DType::Bool, {x, y}).bits() == (a != b));
    }
}

TEST_CASE("semantics: float ops round the exact result once") {
  Sweep sweep;
  for (DType dtype : kFloats)
    for (const ExactCase& row : kExactCases)
      for (Scalar a : float_corners(dtype))
        for (Scalar b : float_corners(dtype)) {
          const Scalar want = rounded(dtype, row.expected(quad(a), quad(b)));
          const Scalar got =
              info(row.op).sources == 1 ? eval(row.op, dtype, {a}) : eval(row.op, dtype, {a, b});
          sweep.expect(got, want, row.op, a, b);
        }
  sweep.finish(90'000);
}

TEST_CASE("semantics: f32 arithmetic is the machine's") {
  Sweep sweep;
  std::mt19937_64 random(1);
  const DType f32 = DType::F32;
  for (int i = 0; i < 20'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const float y = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const Scalar a = Scalar::of(f32, x), b = Scalar::of(f32, y);
    sweep.expect(eval(Op::Add, f32, {a, b}), Scalar::of(f32, x + y), Op::Add, a, b);
    sweep.expect(eval(Op::Mul, f32, {a, b}), Scalar::of(f32, x * y), Op::Mul, a, b);
    sweep.expect(eval(Op::Div, f32, {a, b}), Scalar::of(f32, x / y), Op::Div, a, b);
    sweep.expect(eval(Op::Sqrt, f32, {a}), Scalar::of(f32, std::sqrt(x)), Op::Sqrt, a, a);
  }
  sweep.finish(80'000);
}

TEST_CASE("semantics: square roots are rounded once") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    // Positive and normal, so that the squares of the midpoints are too.
    const double x = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52),
                                static_cast<int>(random() % 1800) - 900);
    REQUIRE(is_root(x, eval(Op::Sqrt, DType::F64, {Scalar::of(DType::F64, x)}).as_double()));
  }
}

TEST_CASE("semantics: every function is compared with long double") {
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    CAPTURE(name(op));
    CHECK(std::ranges::count(kLibraryCases, op, &LibraryCase::op) ==
          (is_libm_function(op) ? 1 : 0));
  }
}

TEST_CASE("semantics: library functions are as close as libm") {
  size_t wrong = 0;
  for (DType dtype : kFloats)
    for (const LibraryCase& row : kLibraryCases)
      for (Scalar a : float_corners(dtype))
        for (Scalar b : float_corners(dtype)) {
          const long double exact_value = row.expected(a.as_double(), b.as_double());
          const Scalar want = Scalar::of(dtype, static_cast<double>(exact_value));
          const Scalar got =
              info(row.op).sources == 1 ? eval(row.op, dtype, {a}) : eval(row.op, dtype, {a, b});
          if (distance(got, want) <= (dtype == DType::F64 ? row.f64_steps : kRounded)) continue;
          if (wrong++ == 0)
            MESSAGE(name(row.op), " ", name(dtype), " ", to_text(a), ", ", to_text(b), " gave ",
                    to_text(got), ", wanted ", to_text(want));
        }
  CHECK(wrong == 0);
}

TEST_CASE("semantics: corners of the library functions") {
  constexpr double kQuarter = std::numbers::pi / 2;
  struct Row {
    Op op;
    double a, b, expected;
  };
  // clang-format off
  const Row rows[] = {
      {Op::Sqrt, 0.0, 0, 0.0},        {Op::Sqrt, -0.0, 0, -0.0},      {Op::Sqrt, -1, 0, kNan},
      {Op::Sqrt, kInf, 0, kInf},      {Op::Sqrt, -1e-310, 0, kNan},   {Op::Exp, 0, 0, 1},
      {Op::Exp, -kInf, 0, 0},         {Op::Exp, kInf, 0, kInf},       {Op::Exp, 1000, 0, kInf},
      {Op::Exp2, 10, 0, 1024},        {Op::Exp2, -1074, 0, 0x1p-1074}, {Op::Exp2, 1024, 0, kInf},
      {Op::Log, 0, 0, -kInf},         {Op::Log, -0.0, 0, -kInf},      {Op::Log, -1, 0, kNan},
      {Op::Log, 1, 0, 0},             {Op::Log2, 8, 0, 3},            {Op::Log2, 0x1p-1074, 0, -1074},
      {Op::Sin, -0.0, 0, -0.0},       {Op::Sin, kInf, 0, kNan},       {Op::Cos, kInf, 0, kNan},
      {Op::Cos, 0, 0, 1},             {Op::Tanh, kInf, 0, 1},         {Op::Tanh, -kInf, 0, -1},
      {Op::Tanh, -0.0, 0, -0.0},      {Op::Erf, kInf, 0, 1},          {Op::Erf, -kInf, 0, -1},
      {Op::Pow, kNan, 0, 1},          {Op::Pow, 1, kNan, 1},          {Op::Pow, kNan, 1, kNan},
      {Op::Pow, 0, 0, 1},             {Op::Pow, -2, 3, -8},           {Op::Pow, -2, 0.5, kNan},
      {Op::Pow, 0, -1, kInf},         {Op::Pow, -0.0, -1, -kInf},     {Op::Pow, -1, kInf, 1},
      {Op::Log1p, -1, 0, -kInf},      {Op::Log1p, -0.0, 0, -0.0},     {Op::Log1p, 1e-20, 0, 1e-20},
      {Op::Expm1, -kInf, 0, -1},      {Op::Expm1, -0.0, 0, -0.0},     {Op::Expm1, 1e-20, 0, 1e-20},
      {Op::Log10, 1000, 0, 3},        {Op::Log10, 0, 0, -kInf},       {Op::Sinh, -0.0, 0, -0.0},
      {Op::Sinh, 1000, 0, kInf},      {Op::Cosh, -1000, 0, kInf},     {Op::Cosh, 0, 0, 1},
      {Op::Asinh, -0.0, 0, -0.0},     {Op::Asinh, -kInf, 0, -kInf},   {Op::Erfc, -kInf, 0, 2},
      {Op::Erfc, kInf, 0, 0},         {Op::Atan2, 0.0, 1, 0.0},       {Op::Atan2, -0.0, 1, -0.0},
      {Op::Atan2, 1, kNan, kNan},     {Op::Atan2, 0, kNan, kNan},     {Op::Atan2, -kInf, 1, -kQuarter},
      {Op::Atan2, 0.0, -0.0, 2 * kQuarter}, {Op::Atan2, kInf, kInf, kQuarter / 2},
      {Op::Max, kNan, 1, kNan},       {Op::Max, 1, kNan, kNan},       {Op::Max, -0.0, 0.0, -0.0},
      {Op::Max, 0.0, -0.0, 0.0},      {Op::Min, 0.0, -0.0, 0.0},      {Op::Min, -0.0, 0.0, -0.0},
      {Op::Min, kNan, -kInf, kNan},   {Op::Round, 0.5, 0, 0.0},       {Op::Round, -0.5, 0, -0.0},
      {Op::Round, 1.5, 0, 2},         {Op::Round, 2.5, 0, 2},         {Op::Round, -3.5, 0, -4},
      {Op::Floor, -0.5, 0, -1},       {Op::Ceil, -0.5, 0, -0.0},      {Op::Trunc, -0.5, 0, -0.0},
      {Op::Add, kInf, -kInf, kNan},   {Op::Mul, 0, kInf, kNan},       {Op::Div, 0, 0, kNan},
      {Op::Div, -1, 0, -kInf},        {Op::Neg, kNan, 0, kNan},       {Op::Neg, 0.0, 0, -0.0},
      {Op::Scale, 1.5, 3.9, 12},      {Op::Scale, -1, -0.5, -0.5},    {Op::Scale, kNan, 3, kNan},
      {Op::Scale, 1, kNan, kNan},     {Op::Scale, 0, kInf, kNan},     {Op::Scale, -kInf, -kInf, kNan},
      {Op::Scale, -3, kInf, -kInf},   {Op::Scale, -3, -kInf, -0.0},   {Op::Scale, -3, 1e9, -kInf},
      {Op::Scale, kNan, kInf, kInf},  {Op::Scale, kNan, -kInf, 0},    {Op::Scale, 1, -1074.5, 0},
  };
  // clang-format on
  for (const Row& row : rows) {
    const Scalar a = Scalar::of(DType::F64, row.a), b = Scalar::of(DType::F64, row.b);
    const Scalar got = info(row.op).sources == 1 ? eval(row.op, DType::F64, {a})
                                                 : eval(row.op, DType::F64, {a, b});
    CAPTURE(name(row.op));
    CAPTURE(row.a);
    CAPTURE(row.b);
    CAPTURE(to_text(got));
    CHECK(got == Scalar::of(DType::F64, row.expected));
  }
}

TEST_CASE("semantics: symbolic integers are exact or an error") {
  const DType index = DType::Index;
  auto of = [&](int64_t value) { return Scalar::of_int(index, value); };
  const int64_t corners[] = {kI64Min, kI64Min + 1, -7, -2, -1, 0, 1, 2, 7, kI64Max - 1, kI64Max};
  for (Op op : {Op::Add, Op::Mul, Op::FloorDiv, Op::Mod, Op::Max, Op::Min})
    for (int64_t a : corners)
      for (int64_t b : corners) {
        CAPTURE(name(op));
        CAPTURE(a);
        CAPTURE(b);
        const bool divides = op == Op::FloorDiv || op == Op::Mod;
        if (divides && b == 0) {
          CHECK_THROWS_AS(eval(op, index, {of(a), of(b)}), UserError);
          continue;
        }
        const Wide want = op == Op::Add        ? Wide(a) + b
                          : op == Op::Mul      ? Wide(a) * b
                          : op == Op::FloorDiv ? floored(a, b)
                          : op == Op::Mod      ? a - floored(a, b) * b
                          : op == Op::Max      ? std::max<Wide>(a, b)
                                               : std::min<Wide>(a, b);
        if (want < kI64Min || want > kI64Max) {
          CHECK_THROWS_AS(eval(op, index, {of(a), of(b)}), UserError);
        } else {
          CHECK(eval(op, index, {of(a), of(b)}) == of(static_cast<int64_t>(want)));
        }
      }
  CHECK_THROWS_AS(eval(Op::Cast, index, {Scalar::of(DType::F64, kNan)}), UserError);
}

TEST_CASE("semantics: bitcast keeps the bits") {
  const std::pair<DType, DType> pairs[] = {{DType::U16, DType::F16},   {DType::I16, DType::F16},
                                           {DType::U16, DType::BF16},  {DType::U8, DType::F8E4M3},
                                           {DType::I8, DType::F8E5M2}, {DType::U16, DType::I16}};
  for (const auto& [from, to] : pairs)
    for (uint64_t code = 0; code < uint64_t{1} << width(from); ++code) {
      const Scalar source = wrapped(from, Wide(code));
      const Scalar there = eval(Op::Bitcast, to, {source});
      if (is_float(to) && std::isnan(there.as_double())) {
        REQUIRE(std::isnan(decode(to, code)));
        continue;
      }
      if (is_float(to)) REQUIRE(there.as_double() == decode(to, code));
      REQUIRE(eval(Op::Bitcast, from, {there}) == source);
    }
  auto bits = [](DType from, DType to, double value) {
    return eval(Op::Bitcast, to, {Scalar::of(from, value)});
  };
  CHECK(bits(DType::F32, DType::U32, 1.0).bits() == 0x3f800000u);
  CHECK(bits(DType::F32, DType::I32, -0.0).as_int() == std::numeric_limits<int32_t>::min());
  CHECK(bits(DType::F32, DType::U32, kNan).bits() == 0x7fc00000u);
  CHECK(bits(DType::F64, DType::U64, -2.0).bits() == 0xc000000000000000u);
  CHECK(bits(DType::I32, DType::F32, 0x3f800000).as_double() == 1.0);
  CHECK(bits(DType::F8E4M3, DType::U8, 448).bits() == 0x7e);
  CHECK(bits(DType::F16, DType::BF16, 1.0).as_double() == decode(DType::BF16, 0x3c00));
}

TEST_CASE("semantics: cast follows scalar.h") {
  Bench bench;
  for (DType from : kAllDTypes) {
    if (is_index(from)) continue;
    std::vector<Scalar> corners = is_float(from) ? float_corners(from)
                                  : is_bool(from)
                                      ? std::vector<Scalar>{Scalar(), Scalar::of_int(from, 1)}
                                      : int_corners(from);
    Value value{from, {static_cast<int64_t>(corners.size())}, {}};
    for (Scalar corner : corners) value.payload.push_back(corner.bits());
    NodeRef input = bench.input(value);
    for (DType to : kAllDTypes) {
      if (is_index(to)) continue;
      const Value got = bench.run(make_cast(input, to));
      REQUIRE(got.dtype == to);
      for (size_t i = 0; i < corners.size(); ++i)
        REQUIRE(got.payload[i] == cast(corners[i], to).bits());
    }
  }
}

// The interpreter repeats a few ops for speed; on every corner they must equal semantics.cc.
TEST_CASE("semantics: tensors hold what evaluate says, bit by bit") {
  Sweep sweep;
  for (int number = 0; number < kTensorOpCount; ++number) {
    const Op op = static_cast<Op>(number);
    const size_t sources = info(op).sources;
    if (!is_elementwise(op) || sources > 2 || info(op).type == TypeRule::Given) continue;
    for (DType dtype : kAllDTypes) {
      if (is_index(dtype) || is_bool(dtype) || !accepts(info(op), dtype)) continue;
      Bench bench;
      const std::vector<Scalar> corners =
          is_float(dtype) ? float_corners(dtype) : int_corners(dtype);
      const int64_t n = static_cast<int64_t>(corners.size());
      Value value{dtype, {n, 1}, {}};
      for (Scalar corner : corners) value.payload.push_back(corner.bits());
      // Every pair, by two repeated views: [n, 1] and [1, n].
      const Sizes turn{1, 0}, square{n, n};
      NodeRef column = bench.input(value), row = make_axes(Op::Permute, column, turn);
      NodeRef a = make_tail(Op::Expand, column, static_dims(square));
      NodeRef b = make_tail(Op::Expand, row, static_dims(square));
      const Value got = bench.run(sources == 1 ? make(op, {a}) : make(op, {a, b}));
      for (int64_t i = 0; i < n * n; ++i) {
        const Scalar x = corners[static_cast<size_t>(i / n)],
                     y = corners[static_cast<size_t>(i % n)];
        const Scalar want = sources == 1 ? eval(op, got.dtype, {x}) : eval(op, got.dtype, {x, y});
        sweep.expect(got.at(i), want, op, x, y);
      }
    }
  }
  sweep.finish(100'000);
}
