// The interpreter against arithmetic that shares no code with it: 128-bit integers, quadruple and
// native floats, and coordinate-by-coordinate references for everything that moves elements.
#include "ir/interpreter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/float_formats.h"
#include "ir/index.h"
#include "ir/semantics.h"

using namespace anneal;

namespace {

__extension__ using Wide = __int128;
#if LDBL_MANT_DIG >= 113
using Quad = long double;
#else
__extension__ using Quad = __float128;
#endif

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();

constexpr DType kInts[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                           DType::U8, DType::U16, DType::U32, DType::U64};
constexpr DType kFloats[] = {DType::F8E4M3, DType::F8E5M2, DType::F16,
                             DType::BF16,   DType::F32,    DType::F64};

using Sizes = std::vector<int64_t>;

// ---- helpers
// -------------------------------------------------------------------------------------

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

int64_t product(const Sizes& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

Sizes coordinates_of(int64_t flat, const Sizes& shape) {
  Sizes at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}

int64_t flat_of(const Sizes& at, const Sizes& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + at[i];
  return flat;
}

Value value_of(DType dtype, Sizes shape, const std::vector<double>& numbers) {
  Value value{dtype, std::move(shape), {}};
  for (double number : numbers) value.payload.push_back(Scalar::of(dtype, number).bits());
  return value;
}

std::vector<double> numbers_of(const Value& value) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.as_double(i));
  return numbers;
}

// A graph with the values of its buffers and variables.
struct Bench {
  Graph graph;
  GraphScope scope{graph};
  std::map<NodeRef, Value> values;
  std::map<NodeRef, int64_t> sizes;

  NodeRef input(Value value) {
    NodeRef node = make_buffer("x", new_buffer_slot(), value.dtype, static_dims(value.shape));
    values[node] = std::move(value);
    return node;
  }
  NodeRef input(DType dtype, Sizes shape, const std::vector<double>& numbers) {
    return input(value_of(dtype, std::move(shape), numbers));
  }
  // 1, 2, 3 ...: every element differs from its neighbours and from padding.
  NodeRef counting(DType dtype, const Sizes& shape) {
    std::vector<double> numbers(static_cast<size_t>(product(shape)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i + 1);
    return input(dtype, shape, numbers);
  }

  Environment environment() {
    Environment result;
    result.variable = [this](NodeRef node) { return sizes.at(node); };
    result.buffer = [this](NodeRef node) {
      auto found = values.find(node);
      return found == values.end() ? nullptr : &found->second;
    };
    return result;
  }
  Value run(NodeRef root) { return interpret({&root, 1}, environment())[0]; }
  std::vector<double> numbers(NodeRef root) { return numbers_of(run(root)); }

  // The message of the error that evaluating `root` must raise.
  std::string error(NodeRef root) {
    try {
      run(root);
    } catch (const UserError& error) {
      return error.message();
    }
    return "no error";
  }
};

bool mentions(const std::string& text, std::initializer_list<const char*> parts) {
  INFO(text);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

Scalar eval(Op op, DType dtype, std::initializer_list<Scalar> sources) {
  return evaluate(op, dtype, std::span(sources.begin(), sources.size()));
}

uint8_t class_of(DType dtype) {
  if (is_index(dtype)) return kIndexClass;
  if (is_bool(dtype)) return kBoolClass;
  return is_float(dtype) ? kFloatClass : kIntClass;
}

// ---- integers
// ------------------------------------------------------------------------------------

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
// --------------------------------------------------------------------------------------

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
// -----------------------------------------------------------------------------

TEST_CASE("interpreter: every elementwise op has a meaning for every dtype it accepts") {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_elementwise(op)) continue;
    for (DType dtype : kAllDTypes) {
      if (!(info(op).accepts & class_of(dtype))) continue;
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

TEST_CASE("interpreter: integer ops are exact and wrap") {
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

TEST_CASE("interpreter: comparisons order every dtype") {
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

TEST_CASE("interpreter: bool ops are logical") {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      const Scalar x = Scalar::of_int(DType::Bool, a), y = Scalar::of_int(DType::Bool, b);
      CHECK(eval(Op::And, DType::Bool, {x, y}).bits() == (a && b));
      CHECK(eval(Op::Or, DType::Bool, {x, y}).bits() == (a || b));
      CHECK(eval(Op::Xor, DType::Bool, {x, y}).bits() == (a != b));
    }
}

TEST_CASE("interpreter: float ops round the exact result once") {
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

TEST_CASE("interpreter: f32 arithmetic is the machine's") {
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

TEST_CASE("interpreter: square roots are rounded once") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    // Positive and normal, so that the squares of the midpoints are too.
    const double x = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52),
                                static_cast<int>(random() % 1800) - 900);
    REQUIRE(is_root(x, eval(Op::Sqrt, DType::F64, {Scalar::of(DType::F64, x)}).as_double()));
  }
}

TEST_CASE("interpreter: library functions are as close as libm") {
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

TEST_CASE("interpreter: corners of the library functions") {
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
      {Op::Max, kNan, 1, kNan},       {Op::Max, 1, kNan, kNan},       {Op::Max, -0.0, 0.0, -0.0},
      {Op::Max, 0.0, -0.0, 0.0},      {Op::Min, 0.0, -0.0, 0.0},      {Op::Min, -0.0, 0.0, -0.0},
      {Op::Min, kNan, -kInf, kNan},   {Op::Round, 0.5, 0, 0.0},       {Op::Round, -0.5, 0, -0.0},
      {Op::Round, 1.5, 0, 2},         {Op::Round, 2.5, 0, 2},         {Op::Round, -3.5, 0, -4},
      {Op::Floor, -0.5, 0, -1},       {Op::Ceil, -0.5, 0, -0.0},      {Op::Trunc, -0.5, 0, -0.0},
      {Op::Add, kInf, -kInf, kNan},   {Op::Mul, 0, kInf, kNan},       {Op::Div, 0, 0, kNan},
      {Op::Div, -1, 0, -kInf},        {Op::Neg, kNan, 0, kNan},       {Op::Neg, 0.0, 0, -0.0},
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

TEST_CASE("interpreter: symbolic integers are exact or an error") {
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

TEST_CASE("interpreter: where picks a whole value") {
  Bench bench;
  NodeRef chooser = bench.input(DType::Bool, {4}, {1, 0, 1, 0});
  for (DType dtype : {DType::F32, DType::I8, DType::Bool}) {
    NodeRef a = bench.input(dtype, {4}, {1, 1, 0, 0}), b = bench.input(dtype, {4}, {0, 0, 1, 1});
    CHECK(bench.numbers(make(Op::Where, {chooser, a, b})) == std::vector<double>{1, 0, 0, 1});
  }
  // A NaN that is not chosen leaves no trace, and one that is chosen stays.
  NodeRef nans = bench.input(DType::F32, {4}, {kNan, kNan, kNan, kNan});
  NodeRef ones = bench.input(DType::F32, {4}, {1, 1, 1, 1});
  const std::vector<double> mixed = bench.numbers(make(Op::Where, {chooser, nans, ones}));
  CHECK(std::isnan(mixed[0]));
  CHECK(mixed[1] == 1);
}

TEST_CASE("interpreter: threefry gives the published words") {
  // Random123's kat_vectors, threefry2x32 with 20 rounds.
  CHECK(threefry(0, 0, 0, 0) == 0x6b200159u);
  CHECK(threefry(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff) == 0x1cb996fcu);
  CHECK(threefry(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344) == 0xc4923a9cu);
  Bench bench;
  auto words = [&](double first, double second) {
    return bench.input(DType::U32, {2}, {first, second});
  };
  NodeRef node = make(Op::Threefry, {words(0, 0x243f6a88), words(0, 0x85a308d3),
                                     words(0, 0x13198a2e), words(0, 0x03707344)});
  CHECK(bench.numbers(node) == std::vector<double>{0x6b200159, 0xc4923a9c});
}

TEST_CASE("interpreter: bitcast keeps the bits") {
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

TEST_CASE("interpreter: cast follows scalar.h") {
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
TEST_CASE("interpreter: tensors hold what evaluate says, bit by bit") {
  Sweep sweep;
  for (int number = 0; number < kOpCount; ++number) {
    const Op op = static_cast<Op>(number);
    const size_t sources = info(op).sources;
    if (!is_elementwise(op) || sources > 2 || info(op).type == TypeRule::Given) continue;
    for (DType dtype : kAllDTypes) {
      if (is_index(dtype) || is_bool(dtype) || !(info(op).accepts & class_of(dtype))) continue;
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

// ---- leaves and movement
// -------------------------------------------------------------------------

TEST_CASE("interpreter: const and iota") {
  Bench bench;
  CHECK(bench.numbers(make_const(DType::F16, 2.5, static_dims(Sizes{2, 2}))) ==
        std::vector<double>{2.5, 2.5, 2.5, 2.5});
  CHECK(bench.numbers(make_const(DType::I32, 7)) == std::vector<double>{7});
  CHECK(bench.numbers(make_const(DType::F32, 7, static_dims(Sizes{3, 0}))).empty());
  CHECK(bench.numbers(make_iota(DType::I32, static_dims(Sizes{2, 3}), 1)) ==
        std::vector<double>{0, 1, 2, 0, 1, 2});
  CHECK(bench.numbers(make_iota(DType::F32, static_dims(Sizes{2, 3}), 0)) ==
        std::vector<double>{0, 0, 0, 1, 1, 1});
  const std::vector<double> wrapping =
      bench.numbers(make_iota(DType::I8, static_dims(Sizes{200}), 0));
  CHECK(wrapping[127] == 127);
  CHECK(wrapping[128] == -128);
  // f8e4m3 has no 17: it ties to 16.
  CHECK(bench.numbers(make_iota(DType::F8E4M3, static_dims(Sizes{18}), 0))[17] == 16);
}

namespace {

// A tensor as a list, and the movement ops on it one coordinate at a time.
struct Naive {
  Sizes shape;
  std::vector<double> elements;

  // The tensor of `result` sizes whose element at c is this one's at from(c), or 0 where from says
  // no.
  Naive moved(const Sizes& result, const std::function<bool(Sizes& at)>& from) const {
    Naive moved{result, {}};
    for (int64_t i = 0; i < product(result); ++i) {
      Sizes at = coordinates_of(i, result);
      moved.elements.push_back(from(at) ? elements[static_cast<size_t>(flat_of(at, shape))] : 0);
    }
    return moved;
  }
};

struct Mover {
  std::mt19937_64 random;
  NodeRef node = nullptr;
  Naive naive = {};

  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  size_t rank() const { return naive.shape.size(); }

  void permute() {
    Sizes axes(rank());
    for (size_t i = 0; i < rank(); ++i) axes[i] = static_cast<int64_t>(i);
    std::shuffle(axes.begin(), axes.end(), random);
    Sizes shape(rank());
    for (size_t i = 0; i < rank(); ++i) shape[i] = naive.shape[static_cast<size_t>(axes[i])];
    node = make_axes(Op::Permute, node, axes);
    naive = naive.moved(shape, [&](Sizes& at) {
      Sizes from(at.size());
      for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(axes[i])] = at[i];
      at = from;
      return true;
    });
  }
  void flip() {
    Sizes axes;
    for (size_t i = 0; i < rank(); ++i)
      if (draw(0, 1)) axes.push_back(static_cast<int64_t>(i));
    node = make_axes(Op::Flip, node, axes);
    naive = naive.moved(naive.shape, [&](Sizes& at) {
      for (int64_t axis : axes) {
        int64_t& c = at[static_cast<size_t>(axis)];
        c = naive.shape[static_cast<size_t>(axis)] - 1 - c;
      }
      return true;
    });
  }
  void expand() {
    Sizes shape = naive.shape;
    for (int64_t& size : shape)
      if (size == 1) size = draw(0, 9) == 0 ? 0 : draw(1, 3);
    node = make_tail(Op::Expand, node, static_dims(shape));
    naive = naive.moved(shape, [&](Sizes& at) {
      for (size_t i = 0; i < at.size(); ++i)
        if (naive.shape[i] == 1) at[i] = 0;
      return true;
    });
  }
  void pad() {
    Sizes pairs, shape = naive.shape;
    for (size_t i = 0; i < rank(); ++i) {
      const int64_t before = draw(0, 2), after = draw(0, 1);
      pairs.insert(pairs.end(), {before, after});
      shape[i] += before + after;
    }
    if (product(shape) > 4000) return;
    node = make_tail(Op::Pad, node, static_dims(pairs));
    naive = naive.moved(shape, [&](Sizes& at) {
      for (size_t i = 0; i < at.size(); ++i) {
        at[i] -= pairs[2 * i];
        if (at[i] < 0 || at[i] >= naive.shape[i]) return false;
      }
      return true;
    });
  }
  void shrink() {
    Sizes pairs, shape = naive.shape;
    for (size_t i = 0; i < rank(); ++i) {
      const int64_t begin = draw(0, std::min<int64_t>(1, shape[i])),
                    end = draw(std::max(begin, shape[i] - 1), shape[i]);
      pairs.insert(pairs.end(), {begin, end});
      shape[i] = end - begin;
    }
    node = make_tail(Op::Shrink, node, static_dims(pairs));
    naive = naive.moved(shape, [&](Sizes& at) {
      for (size_t i = 0; i < at.size(); ++i) at[i] += pairs[2 * i];
      return true;
    });
  }
  // Takes a size apart, or drops and adds a size of 1.
  void reshape() {
    Sizes shape;
    for (int64_t size : naive.shape) {
      if (size == 1 && draw(0, 1)) continue;
      if (size > 1 && size % 2 == 0 && draw(0, 1)) {
        shape.insert(shape.end(), {size / 2, 2});
      } else if (!shape.empty() && draw(0, 2) == 0) {
        shape.back() *= size;
      } else {
        shape.push_back(size);
      }
    }
    if (draw(0, 1)) shape.push_back(1);
    if (shape.size() > 6) return;
    node = make_tail(Op::Reshape, node, static_dims(shape));
    naive.shape = shape;  // row-major order is the list's own
  }
};

}  // namespace

TEST_CASE("interpreter: chains of movement ops match a coordinate-by-coordinate reference") {
  constexpr void (Mover::* kMoves[])() = {&Mover::permute, &Mover::flip,   &Mover::expand,
                                          &Mover::pad,     &Mover::shrink, &Mover::reshape};
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Bench bench;
    Mover mover{std::mt19937_64(seed)};
    const Sizes starts[] = {{4, 3}, {2, 1, 3}, {6}, {1, 4, 1, 2}, {}, {2, 3, 4}};
    const Sizes& shape = starts[seed % std::size(starts)];
    mover.node = bench.counting(DType::F32, shape);
    mover.naive = {shape, numbers_of(bench.values[mover.node])};
    // The first moves are each op alone, then chains in which views lie on views.
    const int length = seed < 60 ? 1 : 6;
    for (int i = 0; i < length; ++i) {
      (mover.*kMoves[length == 1 ? seed / 10 : mover.random() % std::size(kMoves)])();
      if (product(mover.naive.shape) > 4000) break;
    }
    const Value got = bench.run(mover.node);
    CAPTURE(seed);
    REQUIRE(got.shape == mover.naive.shape);
    REQUIRE(numbers_of(got) == mover.naive.elements);
    // The same views, read by an elementwise op and by a reduction.
    REQUIRE(numbers_of(bench.run(make(Op::Neg, {make(Op::Neg, {mover.node})}))) ==
            mover.naive.elements);
    double sum = 0;
    for (double element : mover.naive.elements) sum += element;
    Sizes all(mover.rank());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    REQUIRE(bench.numbers(make_axes(Op::ReduceSum, mover.node, all)) == std::vector<double>{sum});
  }
}

TEST_CASE("interpreter: padding is the zero of each dtype") {
  for (DType dtype : kAllDTypes) {
    if (is_index(dtype)) continue;
    Bench bench;
    NodeRef padded = make_tail(Op::Pad, bench.input(dtype, {1}, {1}), static_dims(Sizes{1, 1}));
    CHECK(bench.numbers(padded) == std::vector<double>{0, 1, 0});
  }
}

// ---- reductions
// ----------------------------------------------------------------------------------

TEST_CASE("interpreter: reductions over every set of axes match the plain sum") {
  const Sizes shape{2, 3, 4};
  for (unsigned mask = 0; mask < 8; ++mask) {
    Bench bench;
    NodeRef x = bench.counting(DType::I32, shape);
    Sizes axes, reduced = shape;
    for (size_t i = 0; i < 3; ++i)
      if (mask >> i & 1) {
        axes.push_back(static_cast<int64_t>(i));
        reduced[i] = 1;
      }
    std::vector<double> sum(static_cast<size_t>(product(reduced)), 0),
        largest = sum, smallest(sum.size(), 1e9), times(sum.size(), 1);
    for (int64_t i = 0; i < product(shape); ++i) {
      Sizes at = coordinates_of(i, shape);
      for (int64_t axis : axes) at[static_cast<size_t>(axis)] = 0;
      const size_t to = static_cast<size_t>(flat_of(at, reduced));
      const double element = static_cast<double>(i + 1);
      sum[to] += element;
      largest[to] = std::max(largest[to], element);
      smallest[to] = std::min(smallest[to], element);
      times[to] *= element;
    }
    CAPTURE(mask);
    const Value got = bench.run(make_axes(Op::ReduceSum, x, axes));
    CHECK(got.shape == reduced);
    CHECK(numbers_of(got) == sum);
    CHECK(bench.numbers(make_axes(Op::ReduceMax, x, axes)) == largest);
    CHECK(bench.numbers(make_axes(Op::ReduceMin, x, axes)) == smallest);
    CHECK(bench.numbers(make_axes(Op::ReduceSum, make_cast(x, DType::F32), axes)) == sum);
    CHECK(bench.numbers(make_axes(Op::ReduceMax, make_cast(x, DType::F16), axes)) == largest);
    if (mask != 7)  // 24! is no i64
      CHECK(bench.numbers(make_axes(Op::ReduceProd, make_cast(x, DType::F64), axes)) == times);
  }
}

TEST_CASE("interpreter: sums run in f64, in row-major order, and round once") {
  Bench bench;
  const Sizes all{0}, both{0, 1};
  // Rounding at every step would stay at 2048, and at 1.
  NodeRef halves = make_const(DType::F16, 1, static_dims(Sizes{4096}));
  CHECK(bench.numbers(make_axes(Op::ReduceSum, halves, all)) == std::vector<double>{4096});
  NodeRef fine = bench.input(DType::F32, {3}, {1, 0x1p-24, 0x1p-24});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, fine, all)) == std::vector<double>{1 + 0x1p-23});
  // The order shows where f64 itself rounds: 1e300 - 1e300 + 1 and 1e300 + 1 - 1e300.
  NodeRef early = bench.input(DType::F64, {2, 2}, {1e300, -1e300, 1, 0});
  NodeRef late = bench.input(DType::F64, {2, 2}, {1e300, 1, -1e300, 0});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, early, both)) == std::vector<double>{1});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, late, both)) == std::vector<double>{0});
  // The order is that of the tensor reduced, not of the memory under it.
  const Sizes turn{1, 0};
  CHECK(bench.numbers(make_axes(Op::ReduceSum, make_axes(Op::Permute, late, turn), both)) ==
        std::vector<double>{1});
  // 70000 * 70000 is no f16 and no i32, on the way or at the end.
  NodeRef large = bench.input(DType::F16, {2}, {60000, 60000});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, large, all)) == std::vector<double>{kInf});
  NodeRef cancels = bench.input(DType::F16, {3}, {60000, 60000, -60000});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, cancels, all)) == std::vector<double>{60000});
  NodeRef bytes = bench.input(DType::U8, {3}, {200, 100, 3});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, bytes, all)) == std::vector<double>{47});
  CHECK(bench.numbers(make_axes(Op::ReduceProd, bytes, all)) == std::vector<double>{60000 % 256});
  NodeRef signs = bench.input(DType::I8, {2}, {100, 100});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, signs, all)) == std::vector<double>{-56});
}

TEST_CASE("interpreter: reductions of nothing and of NaN") {
  const Sizes all{0};
  for (DType dtype : kAllDTypes) {
    if (is_index(dtype) || is_bool(dtype)) continue;
    Bench bench;
    NodeRef none = bench.input(dtype, {0, 2}, {});
    auto both = [&](Op op, Scalar want) {
      const Value got = bench.run(make_axes(op, none, all));
      return got.shape == Sizes{1, 2} && got.at(0) == want && got.at(1) == want;
    };
    CAPTURE(name(dtype));
    CHECK(both(Op::ReduceSum, Scalar::of(dtype, 0)));
    CHECK(both(Op::ReduceProd, Scalar::of(dtype, 1)));
    CHECK(both(Op::ReduceMax, lowest(dtype)));
    CHECK(both(Op::ReduceMin, highest(dtype)));
    if (is_float(dtype))
      for (Op op : {Op::ReduceSum, Op::ReduceProd, Op::ReduceMax, Op::ReduceMin})
        for (size_t place = 0; place < 3; ++place) {
          std::vector<double> numbers{1, 2, 3};
          numbers[place] = kNan;
          const Value got = bench.run(make_axes(op, bench.input(dtype, {3}, numbers), all));
          CHECK(got.at(0) == Scalar::of(dtype, kNan));
        }
  }
  Bench bench;
  NodeRef big = bench.input(Value{DType::U64, {2}, {uint64_t{1} << 63, 5}});
  CHECK(bench.run(make_axes(Op::ReduceMax, big, all)).payload[0] == uint64_t{1} << 63);
  CHECK(bench.run(make_axes(Op::ReduceMin, big, all)).payload[0] == 5);
  NodeRef infinite = bench.input(DType::F32, {2}, {kInf, -kInf});
  CHECK(bench.run(make_axes(Op::ReduceSum, infinite, all)).at(0) == Scalar::of(DType::F32, kNan));
}

// ---- indexed access
// ------------------------------------------------------------------------------

TEST_CASE("interpreter: gather and scatter match their definition") {
  for (int64_t axis : {0, 1, 2})
    for (DType places_dtype : {DType::I32, DType::I64, DType::U8}) {
      Bench bench;
      std::mt19937_64 random(static_cast<uint64_t>(axis));
      const Sizes shape{2, 3, 4};
      Sizes part = shape;
      part[static_cast<size_t>(axis)] = 5;
      NodeRef table = bench.counting(DType::F32, shape);
      std::vector<double> places, updates;
      for (int64_t i = 0; i < product(part); ++i) {
        // From two before the first place to two after the last; u8 wraps to far outside.
        const int64_t place = static_cast<int64_t>(random() % 8) - 2;
        places.push_back(places_dtype == DType::U8 && place < 0 ? 256.0 + static_cast<double>(place)
                                                                : static_cast<double>(place));
        updates.push_back(static_cast<double>(100 * (i + 1)));
      }
      NodeRef at = bench.input(places_dtype, part, places);
      NodeRef values = bench.input(DType::F32, part, updates);

      std::vector<double> gathered, added = numbers_of(bench.values[table]), written = added;
      for (int64_t i = 0; i < product(part); ++i) {
        Sizes c = coordinates_of(i, part);
        const double place = places[static_cast<size_t>(i)];
        const bool inside =
            place >= 0 && place < static_cast<double>(shape[static_cast<size_t>(axis)]);
        c[static_cast<size_t>(axis)] = static_cast<int64_t>(place);
        const size_t flat = inside ? static_cast<size_t>(flat_of(c, shape)) : 0;
        gathered.push_back(inside ? static_cast<double>(flat + 1) : 0);
        if (!inside) continue;
        added[flat] += updates[static_cast<size_t>(i)];
        written[flat] = updates[static_cast<size_t>(i)];
      }
      CAPTURE(axis);
      const Value got = bench.run(make(Op::Gather, {table, at}, Arg(axis)));
      CHECK(got.shape == part);
      CHECK(numbers_of(got) == gathered);
      CHECK(bench.numbers(make(Op::ScatterAdd, {table, at, values}, Arg(axis))) == added);
      CHECK(bench.numbers(make(Op::Scatter, {table, at, values}, Arg(axis))) == written);
      // The operands untouched, and the same through views.
      CHECK(numbers_of(bench.values[table]).front() == 1);
      const Sizes turn{2, 0, 1};
      const int64_t turned = axis == 2 ? 0 : axis + 1;
      auto view = [&](NodeRef node) { return make_axes(Op::Permute, node, turn); };
      const Sizes back{1, 2, 0};
      NodeRef through = make(Op::Gather, {view(table), view(at)}, Arg(turned));
      CHECK(bench.numbers(make_axes(Op::Permute, through, back)) == gathered);
      NodeRef around = make(Op::ScatterAdd, {view(table), view(at), view(values)}, Arg(turned));
      CHECK(bench.numbers(make_axes(Op::Permute, around, back)) == added);
    }
}

TEST_CASE("interpreter: scatter_add rounds once, wraps, and meets extreme places") {
  Bench bench;
  const Arg axis(int64_t{0});
  NodeRef zeros = bench.input(DType::I64, {3}, {0, 0, 0});
  NodeRef fine = make(Op::ScatterAdd,
                      {bench.input(DType::F32, {1}, {1}), zeros,
                       bench.input(DType::F32, {3}, {0x1p-24, 0x1p-24, 0})},
                      axis);
  CHECK(bench.numbers(fine) == std::vector<double>{1 + 0x1p-23});
  NodeRef wraps =
      make(Op::ScatterAdd,
           {bench.input(DType::I8, {1}, {100}), zeros, bench.input(DType::I8, {3}, {100, 100, 1})},
           axis);
  CHECK(bench.numbers(wraps) == std::vector<double>{45});
  NodeRef nan = make(
      Op::ScatterAdd,
      {bench.input(DType::F16, {2}, {kInf, 1}), zeros, bench.input(DType::F16, {3}, {-kInf, 1, 1})},
      axis);
  CHECK(bench.run(nan).at(0) == Scalar::of(DType::F16, kNan));
  CHECK(bench.run(nan).at(1) == Scalar::of(DType::F16, 1));

  NodeRef far =
      bench.input(Value{DType::I64, {2}, {uint64_t{1} << 63, static_cast<uint64_t>(kI64Max)}});
  NodeRef farther = bench.input(Value{DType::U64, {2}, {~uint64_t{0}, uint64_t{1} << 63}});
  NodeRef table = bench.input(DType::F32, {2}, {1, 2});
  for (NodeRef places : {far, farther}) {
    CHECK(bench.numbers(make(Op::Gather, {table, places}, axis)) == std::vector<double>{0, 0});
    CHECK(bench.numbers(make(Op::Scatter, {table, places, table}, axis)) ==
          std::vector<double>{1, 2});
  }
  NodeRef nothing = bench.input(DType::F32, {0}, {});
  NodeRef empty_table = make(Op::Gather, {nothing, zeros}, axis);
  CHECK(bench.numbers(empty_table) == std::vector<double>{0, 0, 0});
}

// ---- graphs
// --------------------------------------------------------------------------------------

TEST_CASE("interpreter: structure ops pass values on and read no more than they need") {
  Bench bench;
  NodeRef x = bench.input(DType::F32, {2}, {1, 2});
  NodeRef absent = make_buffer("absent", new_buffer_slot(), DType::F32, static_dims(Sizes{2}));
  CHECK(bench.numbers(make(Op::Contiguous, {x})) == std::vector<double>{1, 2});
  CHECK(bench.numbers(make(Op::StopGradient, {x})) == std::vector<double>{1, 2});
  CHECK(bench.numbers(make(Op::Assign, {absent, x})) == std::vector<double>{1, 2});
  const Symbol* symbol = bench.graph.intern_symbol("clip", 0, 0);
  CHECK(bench.numbers(make(Op::CustomGrad, {x, absent}, Arg(symbol))) == std::vector<double>{1, 2});
}

TEST_CASE("interpreter: known values stand for the nodes that would compute them") {
  Bench bench;
  NodeRef absent = make_buffer("absent", new_buffer_slot(), DType::F32, static_dims(Sizes{2}));
  NodeRef inner = make(Op::Exp, {absent}), outer = make(Op::Add, {inner, inner});
  const Value ten = value_of(DType::F32, {2}, {10, 20});
  Environment environment = bench.environment();
  environment.known = [&](NodeRef node) { return node == inner ? &ten : nullptr; };
  const NodeRef roots[] = {outer, inner, outer};
  const std::vector<Value> values = interpret(roots, environment);
  REQUIRE(values.size() == 3);
  CHECK(numbers_of(values[0]) == std::vector<double>{20, 40});
  CHECK(numbers_of(values[1]) == std::vector<double>{10, 20});
  CHECK(numbers_of(values[2]) == std::vector<double>{20, 40});
  const Value wrong = value_of(DType::F32, {3}, {1, 2, 3});
  environment.known = [&](NodeRef node) { return node == inner ? &wrong : nullptr; };
  CHECK_THROWS_AS(interpret(roots, environment), UserError);
}

TEST_CASE("interpreter: one graph at several sizes") {
  Bench bench;
  NodeRef n = make_variable("n", 1, 100);
  auto sized = [&](std::initializer_list<NodeRef> dims) { return std::vector<NodeRef>(dims); };
  NodeRef one = index_const(1), three = index_const(3);
  NodeRef x = make_buffer("x", new_buffer_slot(), DType::F32, sized({n, three}));
  NodeRef flat = make_tail(Op::Reshape, x, sized({index_mul(n, three)}));
  NodeRef padded = make_tail(Op::Pad, flat, sized({n, one}));  // 4n + 1
  NodeRef size = index_add(index_mul(n, index_const(4)), one);
  NodeRef tail = make_tail(Op::Shrink, padded, sized({n, size}));  // 3n + 1
  NodeRef counted = make_const(DType::F32, 2, tail->shape->dims());
  const Sizes all{0};
  NodeRef total = make_axes(Op::ReduceSum, make(Op::Mul, {tail, counted}), all);
  NodeRef average = make(Op::Div, {make_tail(Op::Reshape, total, {}), make_cast(n, DType::F32)});
  NodeRef ramp = make_iota(DType::I32, sized({index_floor_div(size, index_const(2))}), 0);
  NodeRef large = make(Op::Lt, {index_const(2), n});
  NodeRef either = make(Op::Where, {large, n, three});
  NodeRef chosen = make_const(DType::Bool, 1, sized({either}));
  for (int64_t value : {1, 2, 5}) {
    bench.sizes[n] = value;
    std::vector<double> numbers(static_cast<size_t>(3 * value));
    double sum = 0;
    for (size_t i = 0; i < numbers.size(); ++i) sum += numbers[i] = static_cast<double>(i * i);
    bench.values[x] = value_of(DType::F32, {value, 3}, numbers);
    CAPTURE(value);
    CHECK(bench.run(padded).shape == Sizes{4 * value + 1});
    numbers.push_back(0);
    CHECK(bench.numbers(tail) == numbers);
    CHECK(bench.run(average).at(0) == Scalar::of(DType::F32, 2 * sum / static_cast<double>(value)));
    CHECK(bench.run(ramp).shape == Sizes{(4 * value + 1) / 2});
    CHECK(bench.run(chosen).shape == Sizes{value > 2 ? value : 3});
    auto variable = [&](NodeRef) { return value; };
    CHECK(interpret_index(size, variable) == 4 * value + 1);
    CHECK(interpret_index(index_mod(size, three), variable) == (4 * value + 1) % 3);
    CHECK(interpret_index(three, nullptr) == 3);
    CHECK(interpret_index(large, variable) == (value > 2));
  }
}

TEST_CASE("interpreter: chains of 100,000 nodes") {
  Bench bench;
  NodeRef x = bench.input(DType::F64, {2}, {0, 1}), one = make_const_like(x, 1), sum = x;
  for (int i = 0; i < 100'000; ++i) sum = make(Op::Add, {sum, one});
  CHECK(bench.numbers(sum) == std::vector<double>{100'000, 100'001});
  NodeRef n = make_variable("n", 0, 10), size = n;
  for (int i = 0; i < 100'000; ++i) size = make(Op::Add, {size, n});
  CHECK(interpret_index(size, [](NodeRef) { return int64_t{3}; }) == 300'003);
}

TEST_CASE("interpreter: errors name what is wrong and both values") {
  Bench bench;
  NodeRef n = make_variable("n", 1, 8), m = make_variable("m", 0, kI64Max);
  auto sized = [&](std::initializer_list<NodeRef> dims) { return std::vector<NodeRef>(dims); };
  NodeRef zero = index_const(0), two = index_const(2), four = index_const(4);
  NodeRef x = bench.input(DType::F32, {4}, {1, 2, 3, 4});
  NodeRef ones = make_const(DType::F32, 1, sized({m}));
  bench.sizes[n] = 9;
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({n}))), {"n is 9", "1 and 8"}));
  bench.sizes[n] = 3;
  CHECK(mentions(bench.error(make_tail(Op::Reshape, x, sized({n}))), {"[4] has 4", "[3] has 3"}));
  bench.sizes[m] = 5;
  CHECK(mentions(bench.error(make_tail(Op::Shrink, x, sized({n, m}))), {"axis 0 of 4", "3 to 5"}));
  CHECK(mentions(bench.error(make_tail(Op::Shrink, x, sized({n, two}))), {"3 to 2"}));
  NodeRef minus = index_sub(zero, m);
  CHECK(mentions(bench.error(make_tail(Op::Pad, x, sized({minus, zero}))), {"-5 and 0"}));
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({minus}))), {"negative", "-5"}));
  CHECK(mentions(bench.error(make_const(
                     DType::F32, 1, sized({index_floor_div(four, index_sub(m, index_const(5)))}))),
                 {"divided by zero", "4"}));
  bench.sizes[m] = kI64Max;
  CHECK(mentions(bench.error(make_tail(Op::Pad, x, sized({m, zero}))),
                 {"of 4", "9223372036854775807"}));
  CHECK(mentions(bench.error(make(Op::Neg, {ones})), {"too many elements"}));
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({m, m}))), {"too many elements"}));
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({index_mul(m, two)}))),
                 {"64 bits", "* 2"}));
  bench.sizes[m] = int64_t{1} << 40;
  const Sizes all{0};
  CHECK(mentions(bench.error(make_axes(Op::ReduceSum, ones, all)),
                 {"too many elements", "1099511627776"}));

  NodeRef absent = make_buffer("weights", new_buffer_slot(), DType::F32, sized({two}));
  CHECK(mentions(bench.error(absent), {"weights", "no value"}));
  bench.values[absent] = value_of(DType::F32, {3}, {1, 2, 3});
  CHECK(mentions(bench.error(absent), {"f32[2]", "f32[3]"}));
  bench.values[absent] = value_of(DType::F64, {2}, {1, 2});
  CHECK(mentions(bench.error(absent), {"f32[2]", "f64[2]"}));
  CHECK_THROWS_AS(interpret_index(n, nullptr), UserError);
}

TEST_CASE("interpreter: storage holds each dtype in its own format") {
  auto bytes = [](DType dtype, double number) {
    std::vector<int> codes;
    for (std::byte byte : to_storage(value_of(dtype, {}, {number})).bytes)
      codes.push_back(static_cast<int>(byte));
    return codes;
  };
  CHECK(bytes(DType::Bool, 1) == std::vector{1});
  CHECK(bytes(DType::I8, -2) == std::vector{0xfe});
  CHECK(bytes(DType::I32, 0x01020304) == std::vector{4, 3, 2, 1});
  CHECK(bytes(DType::F8E4M3, 1) == std::vector{0x38});
  CHECK(bytes(DType::F16, 1) == std::vector{0x00, 0x3c});
  CHECK(bytes(DType::BF16, 1) == std::vector{0x80, 0x3f});
  CHECK(bytes(DType::F32, -1) == std::vector{0, 0, 0x80, 0xbf});
  CHECK(bytes(DType::F64, 1) == std::vector{0, 0, 0, 0, 0, 0, 0xf0, 0x3f});
  for (DType dtype : kAllDTypes) {
    if (is_index(dtype)) continue;
    Value value{dtype, {}, {}};
    for (Scalar corner : is_float(dtype)  ? float_corners(dtype)
                         : is_bool(dtype) ? std::vector<Scalar>{Scalar(), Scalar::of_int(dtype, 1)}
                                          : int_corners(dtype))
      value.payload.push_back(corner.bits());
    value.shape = {value.size(), 1};
    const Storage storage = to_storage(value);
    CHECK(storage.bytes.size() == value.payload.size() * byte_size(dtype));
    const Value back = to_value(storage);
    CHECK(back.dtype == dtype);
    CHECK(back.shape == value.shape);
    CHECK(back.payload == value.payload);
  }
  // Memory may hold any byte in a bool and any NaN in a float; a value has one of each.
  CHECK(to_value({DType::Bool, {1}, {std::byte{2}}}).payload[0] == 1);
  const std::byte ff{0xff};
  CHECK(to_value({DType::F32, {1}, {ff, ff, ff, ff}}).at(0) == Scalar::of(DType::F32, kNan));
  CHECK_THROWS_AS(to_value({DType::F32, {2}, {ff, ff, ff, ff}}), InternalError);
}
