// Elementwise functions where they are hard: NaN, infinities, both zeros, subnormals, the ends of
// every integer. Expectations are C++'s own arithmetic, <cmath> and 128-bit integers.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/device.h>

#include "ir/dtype.h"
#include "ir/float_formats.h"
#include "op_case_runner.h"
#include "op_cases.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<double> kCorners{
    kNan,     kInf,   -kInf, 0.0,   -0.0, 5e-324, -5e-324, 2.3e-308, 1e-300,  -1e-300,
    1e-40,    -1e-40, 1e-8,  -1e-8, 0.25, -0.25,  0.5,     -0.5,     1,       -1,
    1.5,      -1.5,   2,     -2,    2.5,  -2.5,   3,       -3,       7,       -7,
    20,       -20,    88.5,  -88.5, 448,  -448,   65504,   -65504,   709,     -709,
    1e6 + .5, -1e15,  1e30,  -1e30, 3e38, -3e38,  1e300,   -1e300,   1.7e308, -1.7e308,
};

// How a result may differ: not at all, or by rounding and, near 0, by `tiny`.
struct Slack {
  double relative = 0, tiny = 0;
};
constexpr Slack kSame{};                 // bit for bit, the sign of zero too
constexpr Slack kRounded{1e-14, 1e-15};  // a formula of several roundings

bool agree(double got, double expected, Slack slack) {
  if (std::isnan(expected)) return std::isnan(got);
  if (slack.relative == 0) return std::bit_cast<uint64_t>(got) == std::bit_cast<uint64_t>(expected);
  if (got == expected) return true;
  return std::fabs(got - expected) <= slack.relative * std::fabs(expected) + slack.tiny;
}

// ---- functions of one number

struct Unary {
  std::string_view name;
  Tensor (*function)(const Operand& x);
  double (*expected)(double x);
  Slack slack = kSame;
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

const std::vector<Unary> kUnary{
    // The ops themselves: rounded once, in every float dtype.
    {"-", [](const Operand& x) { return -x; }, [](double x) { return -x; }},
    {"abs", abs, [](double x) { return std::fabs(x); }},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"exp2", exp2, [](double x) { return std::exp2(x); }},
    {"log", log, [](double x) { return std::log(x); }},
    {"log2", log2, [](double x) { return std::log2(x); }},
    {"log10", log10, [](double x) { return std::log10(x); }},
    {"log1p", log1p, [](double x) { return std::log1p(x); }},
    {"expm1", expm1, [](double x) { return std::expm1(x); }},
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sinh", sinh, [](double x) { return std::sinh(x); }},
    {"cosh", cosh, [](double x) { return std::cosh(x); }},
    {"asinh", asinh, [](double x) { return std::asinh(x); }},
    {"erf", erf, [](double x) { return std::erf(x); }},
    {"erfc", erfc, [](double x) { return std::erfc(x); }},
    {"atan", atan, [](double x) { return std::atan(x); }},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
    {"floor", floor, [](double x) { return std::floor(x); }},
    {"ceil", ceil, [](double x) { return std::ceil(x); }},
    {"trunc", trunc, [](double x) { return std::trunc(x); }},
    {"round", round, [](double x) { return std::nearbyint(x); }},
    {"square", square, [](double x) { return x * x; }},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
    {"contiguous", contiguous, [](double x) { return x; }},
    // Formulas, in f64.
    {"sign", sign, [](double x) { return x > 0   ? 1.0
                                         : x < 0 ? -1.0
                                                 : x; }, kRounded},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, kRounded},
    {"tan", tan, [](double x) { return std::tan(x); }, kRounded},
    {"asin", asin, [](double x) { return std::asin(x); }, kRounded},
    {"acos", acos, [](double x) { return std::acos(x); }, kRounded},
    // Not all C libraries answer NaN far below 1.
    {"acosh", acosh, [](double x) { return x < 1 ? std::nan("") : std::acosh(x); }, kRounded},
    {"atanh", atanh, [](double x) { return std::atanh(x); }, kRounded},
    {"relu", relu, [](double x) { return x > 0 || std::isnan(x) ? x : 0; }, kRounded},
    {"sigmoid", sigmoid, sigmoid_of, kRounded},
    {"silu", silu, [](double x) { return x * sigmoid_of(x); }, kRounded},
    {"softplus", softplus, softplus_of, kRounded},
    {"elu", [](const Operand& x) { return elu(x); },
     [](double x) { return x > 0 ? x : std::expm1(x); }, kRounded},
    {"gelu", gelu, [](double x) { return x * 0.5 * (1 + std::erf(x * std::sqrt(0.5))); }, kRounded},
    {"mish", mish, [](double x) { return x * std::tanh(softplus_of(x)); }, kRounded},
    {"clamp", [](const Operand& x) { return clamp(x, -1, 2); },
     [](double x) { return x < -1  ? -1
                           : x > 2 ? 2
                                   : x; }, kRounded},
    {"is_nan", [](const Operand& x) { return cast(is_nan(x), DType::F64); },
     [](double x) { return std::isnan(x) ? 1.0 : 0.0; }, kRounded},
    {"is_inf", [](const Operand& x) { return cast(is_inf(x), DType::F64); },
     [](double x) { return std::isinf(x) ? 1.0 : 0.0; }, kRounded},
    {"is_finite", [](const Operand& x) { return cast(is_finite(x), DType::F64); },
     [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }, kRounded},
};

// ---- functions of two numbers

struct Binary {
  std::string_view name;
  Tensor (*function)(const Operand& a, const Operand& b);
  double (*expected)(double a, double b);
  Slack slack = kSame;
  bool is_formula = false;  // of several roundings: in f64 alone
};

double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNan : a < b ? b : a; }
double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNan : b < a ? b : a; }

double log_of_sum(double a, double b) {
  if (a == b) return a + std::numbers::ln2;
  return larger(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// Python's, from fmod.
double remainder_of(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}
// NumPy's divmod, step by step.
double floor_quotient_of(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

const std::vector<Binary> kBinary{
    {"%", operator%, remainder_of},
    {"floor_divide", floor_divide, floor_quotient_of},
    {"+", operator+, [](double a, double b) { return a + b; }},
    {"-", operator-, [](double a, double b) { return a - b; }},
    {"*", operator*, [](double a, double b) { return a * b; }},
    {"/", operator/, [](double a, double b) { return a / b; }},
    {"pow", pow, [](double a, double b) { return std::pow(a, b); }},
    {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }},
    {"logaddexp", logaddexp, log_of_sum, kRounded, true},
    {"maximum", maximum, larger, kRounded},  // which zero of two is not said
    {"minimum", minimum, smaller, kRounded},
    {"<", operator<, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"<=", operator<=, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {">", operator>, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {">=", operator>=, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"==", operator==, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"!=", operator!=, [](double a, double b) { return a != b ? 1.0 : 0.0; }},
};

// ---- integers

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

// The low bits of a product, which are all that survives wrapping.
Wide multiply(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b));
}

struct IntegerBinary {
  std::string_view name;
  Tensor (*function)(const Operand& a, const Operand& b);
  Wide (*expected)(Wide a, Wide b, int bits);  // before it wraps
};

Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

const std::vector<IntegerBinary> kIntegerBinary{
    {"+", operator+, [](Wide a, Wide b, int) { return a + b; }},
    {"-", operator-, [](Wide a, Wide b, int) { return a - b; }},
    {"*", operator*, [](Wide a, Wide b, int) { return multiply(a, b); }},
    {"floor_divide", floor_divide, [](Wide a, Wide b, int) { return floor_quotient(a, b); }},
    {"%", operator%, [](Wide a, Wide b, int) { return b == 0 ? 0 : a - floor_quotient(a, b) * b; }},
    {"maximum", maximum, [](Wide a, Wide b, int) { return a < b ? b : a; }},
    {"minimum", minimum, [](Wide a, Wide b, int) { return a < b ? a : b; }},
    {"&", operator&, [](Wide a, Wide b, int) { return a & b; }},
    {"|", operator|, [](Wide a, Wide b, int) { return a | b; }},
    {"^", operator^, [](Wide a, Wide b, int) { return a ^ b; }},
    {"<<", operator<<,
     [](Wide a, Wide b, int bits) { return b < 0 || b >= bits ? 0 : multiply(a, Wide{1} << b); }},
    {">>", operator>>, [](Wide a, Wide b, int) { return b < 0 ? 0 : a >> (b < 64 ? b : 64); }},
    {"<", operator<, [](Wide a, Wide b, int) -> Wide { return a < b; }},
    {"<=", operator<=, [](Wide a, Wide b, int) -> Wide { return a <= b; }},
    {"==", operator==, [](Wide a, Wide b, int) -> Wide { return a == b; }},
};

struct IntegerUnary {
  std::string_view name;
  Tensor (*function)(const Operand& x);
  Wide (*expected)(Wide x);
};

const std::vector<IntegerUnary> kIntegerUnary{
    {"-", [](const Operand& x) { return -x; }, [](Wide x) { return -x; }},
    {"abs", abs, [](Wide x) { return x < 0 ? -x : x; }},
    {"sign", sign, [](Wide x) -> Wide { return x > 0   ? 1
                                               : x < 0 ? -1
                                                       : 0; }},
    {"~", [](const Operand& x) { return ~x; }, [](Wide x) { return ~x; }},
    {"square", square, [](Wide x) { return multiply(x, x); }},
};

Wide widen(int64_t bits, DType dtype) {
  return is_unsigned(dtype) ? static_cast<Wide>(static_cast<uint64_t>(bits))
                            : static_cast<Wide>(bits);
}

int64_t wrap_to(Wide value, DType dtype) {
  const int unused = 64 - 8 * static_cast<int>(byte_size(dtype));
  const uint64_t bits = static_cast<uint64_t>(value) << unused;
  return is_unsigned(dtype) ? static_cast<int64_t>(bits >> unused)
                            : static_cast<int64_t>(bits) >> unused;
}

// The ends of the dtype, and what lies around zero and around its number of bits.
std::vector<int64_t> integer_corners(DType dtype) {
  const int64_t bits = 8 * static_cast<int64_t>(byte_size(dtype));
  const int64_t least = min_value(dtype), greatest = static_cast<int64_t>(max_value(dtype));
  std::vector<int64_t> values{
      0, 1, 2, 3, 7, bits - 1, bits, bits + 1, greatest - 1, greatest, greatest / 2 + 1};
  if (is_signed(dtype)) {
    for (int64_t value : {int64_t{-1}, int64_t{-2}, int64_t{-3}, -bits, least, least + 1}) {
      values.push_back(value);
    }
  }
  return values;
}

Tensor integer_tensor(const std::vector<int64_t>& values, const std::vector<int64_t>& shape,
                      DType dtype) {
  return from_data(values, Sizes(shape.begin(), shape.end())).cast(dtype);
}

int64_t signed_size(size_t size) { return static_cast<int64_t>(size); }

}  // namespace

TEST_CASE("op cases: corners of functions of one float") {
  DeviceScope exact("interpreter");  // devices may be off by the last digits
  for (DType dtype :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
    const Tensor x = tensor_of(kCorners, {signed_size(kCorners.size())}, dtype);
    for (const Unary& row : kUnary) {
      if (row.slack.relative != 0 && dtype != DType::F64) continue;
      const std::vector<double> got = row.function(x).to_vector<double>();
      REQUIRE(got.size() == kCorners.size());
      for (size_t i = 0; i < got.size(); ++i) {
        const double value = round_to(dtype, kCorners[i]);
        const double expected = round_to(dtype, row.expected(value));
        CHECK_MESSAGE(agree(got[i], expected, row.slack),
                      fmt::format("{} of {} in {} is {}, expected {}", row.name, value, name(dtype),
                                  got[i], expected));
      }
    }
  }
}

TEST_CASE("op cases: corners of functions of two floats") {
  DeviceScope exact("interpreter");  // devices may be off by the last digits
  const int64_t count = signed_size(kCorners.size());
  for (DType dtype :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
    const Tensor a = tensor_of(kCorners, {count, 1}, dtype),
                 b = tensor_of(kCorners, {count}, dtype);
    for (const Binary& row : kBinary) {
      if (row.is_formula && dtype != DType::F64) continue;
      const std::vector<double> got = row.function(a, b).to_vector<double>();
      REQUIRE(got.size() == kCorners.size() * kCorners.size());
      for (size_t i = 0; i < got.size(); ++i) {
        const double left = round_to(dtype, kCorners[i / kCorners.size()]);
        const double right = round_to(dtype, kCorners[i % kCorners.size()]);
        const double expected = round_to(dtype, row.expected(left, right));
        CHECK_MESSAGE(agree(got[i], expected, row.slack),
                      fmt::format("{} {} {} in {} is {}, expected {}", left, row.name, right,
                                  name(dtype), got[i], expected));
      }
    }
  }
}

TEST_CASE("op cases: corners of integers") {
  for (DType dtype : kAllDTypes) {
    if (!is_int(dtype)) continue;
    const int bits = 8 * static_cast<int>(byte_size(dtype));
    const std::vector<int64_t> corners = integer_corners(dtype);
    const int64_t count = signed_size(corners.size());
    const Tensor a = integer_tensor(corners, {count, 1}, dtype);
    const Tensor b = integer_tensor(corners, {count}, dtype);
    for (const IntegerUnary& row : kIntegerUnary) {
      const Tensor result = row.function(b);
      CHECK_MESSAGE(result.dtype() == dtype, row.name << " of " << name(dtype) << " changes dtype");
      const std::vector<int64_t> got = result.to_vector<int64_t>();
      for (size_t i = 0; i < got.size(); ++i) {
        const int64_t expected = wrap_to(row.expected(widen(corners[i], dtype)), dtype);
        CHECK_MESSAGE(got[i] == expected, fmt::format("{} of {} in {} is {}, expected {}", row.name,
                                                      corners[i], name(dtype), got[i], expected));
      }
    }
    for (const IntegerBinary& row : kIntegerBinary) {
      const std::vector<int64_t> got = row.function(a, b).to_vector<int64_t>();
      REQUIRE(got.size() == corners.size() * corners.size());
      for (size_t i = 0; i < got.size(); ++i) {
        const int64_t left = corners[i / corners.size()], right = corners[i % corners.size()];
        const int64_t expected =
            wrap_to(row.expected(widen(left, dtype), widen(right, dtype), bits), dtype);
        CHECK_MESSAGE(got[i] == expected,
                      fmt::format("{} {} {} in {} is {}, expected {}", left, row.name, right,
                                  name(dtype), got[i], expected));
      }
    }
  }
}
