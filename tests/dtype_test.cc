// Dtypes, float codecs, constants and casts, against references that share no code with them.
// Must not compute an expectation with the function under test. Long because its tables are: one
// table per law, and each law is short.
#include "ir/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ir/float_formats.h"
#include "ir/scalar.h"

using namespace anneal;
using namespace std::string_view_literals;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

double two_to(int exponent) { return std::ldexp(1.0, exponent); }

// Sweeps have up to millions of cases: they count what is wrong and show the first, in hexadecimal.
class Sweep {
 public:
  void expect(bool right, double input, uint64_t got, uint64_t want) {
    ++cases_;
    if (right) return;
    if (wrong_++ != 0) return;
    char text[128];
    std::snprintf(text, sizeof text, "first wrong: %a gave %#llx, wanted %#llx", input,
                  static_cast<unsigned long long>(got), static_cast<unsigned long long>(want));
    first_ = text;
  }
  void expect(double input, uint64_t got, uint64_t want) { expect(got == want, input, got, want); }
  void finish(size_t least_cases) const {
    INFO(first_);
    CHECK(wrong_ == 0);
    CHECK(cases_ >= least_cases);
  }

 private:
  size_t cases_ = 0;
  size_t wrong_ = 0;
  std::string first_;
};

// ---- reference codec: every value of a format in a sorted list, searched

struct FormatCase {
  DType dtype;
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
  double largest;
  double smallest_normal;
  double smallest_subnormal;
  uint64_t (*encode)(double);
  double (*decode)(uint64_t);
};

const FormatCase kFormats[] = {{DType::F8E4M3, 4, 3, false, 448.0, two_to(-6), two_to(-9),
                                [](double x) -> uint64_t { return encode_f8e4m3(x); },
                                [](uint64_t c) { return decode_f8e4m3(static_cast<uint8_t>(c)); }},
                               {DType::F8E5M2, 5, 2, true, 57344.0, two_to(-14), two_to(-16),
                                [](double x) -> uint64_t { return encode_f8e5m2(x); },
                                [](uint64_t c) { return decode_f8e5m2(static_cast<uint8_t>(c)); }},
                               {DType::F16, 5, 10, true, 65504.0, two_to(-14), two_to(-24),
                                [](double x) -> uint64_t { return encode_f16(x); },
                                [](uint64_t c) { return decode_f16(static_cast<uint16_t>(c)); }},
                               {DType::BF16, 8, 7, true, 0x1.fep127, two_to(-126), two_to(-133),
                                [](double x) -> uint64_t { return encode_bf16(x); },
                                [](uint64_t c) { return decode_bf16(static_cast<uint16_t>(c)); }}};

// The non-negative finite values in code order by the textbook formula, then the value the first
// code past them would have: what rounds to it has overflowed.
std::vector<double> textbook_values(const FormatCase& format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int steps = 1 << format.mantissa_bits;
  const int last_exponent = (1 << format.exponent_bits) - (format.has_infinity ? 2 : 1);
  std::vector<double> values;
  for (int exponent = 0; exponent <= last_exponent; ++exponent) {
    for (int step = 0; step < steps; ++step) {
      const double fraction = static_cast<double>(step) / steps + (exponent == 0 ? 0.0 : 1.0);
      values.push_back(std::ldexp(fraction, std::max(exponent, 1) - bias));
    }
  }
  if (format.has_infinity) values.push_back(std::ldexp(1.0, last_exponent + 1 - bias));
  return values;
}

// Midpoints of neighbours are exact doubles, so comparing with them decides exactly.
uint64_t nearest_code(const std::vector<double>& values, double input) {
  const double magnitude = std::fabs(input);
  const size_t above = static_cast<size_t>(
      std::lower_bound(values.begin(), values.end(), magnitude) - values.begin());
  if (above == values.size()) return above - 1;
  if (above == 0 || values[above] == magnitude) return above;
  const double midpoint = (values[above - 1] + values[above]) / 2;
  if (magnitude != midpoint) return magnitude < midpoint ? above - 1 : above;
  return above % 2 == 0 ? above : above - 1;
}

// Codes, midpoints, their neighbours in double, and points too near to a midpoint for f32 to tell.
std::vector<double> traps(const std::vector<double>& values) {
  std::vector<double> points{kTiny, two_to(-1022), 1e-300, 1e300,
                             std::numeric_limits<double>::max()};
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const double middle = (values[i] + values[i + 1]) / 2;
    for (double point : {values[i], middle, values[i + 1]}) {
      points.push_back(point);
      points.push_back(std::nextafter(point, kInf));
      points.push_back(std::nextafter(point, -kInf));
      points.push_back(point * (1 + two_to(-40)));
      points.push_back(point * (1 - two_to(-40)));
    }
    for (double part : {0.125, 0.25, 0.375, 0.625, 0.75, 0.875}) {
      points.push_back(values[i] + part * (values[i + 1] - values[i]));
    }
  }
  return points;
}

std::vector<double> random_doubles(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> exponent(-160, 140);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    const double fraction = 1.0 + std::ldexp(static_cast<double>(random() >> 12), -52);
    const double sign = random() % 2 == 0 ? 1.0 : -1.0;
    values.push_back(sign * std::ldexp(fraction, exponent(random)));
  }
  return values;
}

}  // namespace

// ---- dtypes

TEST_CASE("dtype rows") {
  struct Row {
    DType dtype;
    std::string_view text;
    size_t bytes;
    std::string_view classes;  // b: bool, s: signed, u: unsigned, f: float, x: index
  };
  const Row rows[] = {{DType::Bool, "bool", 1, "b"},     {DType::I8, "i8", 1, "s"},
                      {DType::I16, "i16", 2, "s"},       {DType::I32, "i32", 4, "s"},
                      {DType::I64, "i64", 8, "s"},       {DType::U8, "u8", 1, "u"},
                      {DType::U16, "u16", 2, "u"},       {DType::U32, "u32", 4, "u"},
                      {DType::U64, "u64", 8, "u"},       {DType::F8E4M3, "f8e4m3", 1, "f"},
                      {DType::F8E5M2, "f8e5m2", 1, "f"}, {DType::F16, "f16", 2, "f"},
                      {DType::BF16, "bf16", 2, "f"},     {DType::F32, "f32", 4, "f"},
                      {DType::F64, "f64", 8, "f"},       {DType::Index, "index", 8, "x"}};
  REQUIRE(std::size(rows) == kDTypeCount);
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const Row& row = rows[i];
    CAPTURE(row.text);
    CHECK(static_cast<size_t>(row.dtype) == i);
    CHECK(kAllDTypes[i] == row.dtype);
    CHECK(name(row.dtype) == row.text);
    CHECK(parse_dtype(row.text) == row.dtype);
    CHECK(byte_size(row.dtype) == row.bytes);
    CHECK(is_bool(row.dtype) == (row.classes == "b"));
    CHECK(is_signed(row.dtype) == (row.classes == "s"));
    CHECK(is_unsigned(row.dtype) == (row.classes == "u"));
    CHECK(is_int(row.dtype) == (row.classes == "s" || row.classes == "u"));
    CHECK(is_float(row.dtype) == (row.classes == "f"));
    CHECK(is_index(row.dtype) == (row.classes == "x"));
  }
  for (std::string_view text : {"", "f", "F32", "f32 ", "int", "f8", "bool1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_dtype(text).has_value());
  }
}

TEST_CASE("limits") {
  struct IntegerRow {
    DType dtype;
    int64_t least;
    uint64_t greatest;
  };
  const IntegerRow integers[] = {{DType::Bool, 0, 1},
                                 {DType::I8, INT8_MIN, INT8_MAX},
                                 {DType::I16, INT16_MIN, INT16_MAX},
                                 {DType::I32, INT32_MIN, INT32_MAX},
                                 {DType::I64, INT64_MIN, INT64_MAX},
                                 {DType::U8, 0, UINT8_MAX},
                                 {DType::U16, 0, UINT16_MAX},
                                 {DType::U32, 0, UINT32_MAX},
                                 {DType::U64, 0, UINT64_MAX},
                                 {DType::Index, INT64_MIN, INT64_MAX}};
  for (const IntegerRow& row : integers) {
    CAPTURE(name(row.dtype));
    CHECK(min_value(row.dtype) == row.least);
    CHECK(max_value(row.dtype) == row.greatest);
    CHECK(lowest(row.dtype).as_int() == row.least);
    CHECK(highest(row.dtype).bits() == row.greatest);
  }
  struct FloatRow {
    DType dtype;
    double largest;
    double highest;
  };
  const FloatRow floats[] = {{DType::F8E4M3, 448.0, 448.0},
                             {DType::F8E5M2, 57344.0, kInf},
                             {DType::F16, 65504.0, kInf},
                             {DType::BF16, 0x1.fep127, kInf},
                             {DType::F32, std::numeric_limits<float>::max(), kInf},
                             {DType::F64, std::numeric_limits<double>::max(), kInf}};
  for (const FloatRow& row : floats) {
    CAPTURE(name(row.dtype));
    CHECK(largest_finite(row.dtype) == row.largest);
    CHECK(lowest_finite(row.dtype) == -row.largest);
    CHECK(lowest(row.dtype).as_double() == -row.highest);
    CHECK(highest(row.dtype).as_double() == row.highest);
  }
}

// ---- promotion

TEST_CASE("promotion of pairs") {
  struct Row {
    DType a, b, result;
  };
  using enum DType;
  const Row rows[] = {
      {Bool, I8, I8},       {Bool, U64, U64},      {Bool, F8E4M3, F8E4M3}, {Bool, Index, Index},
      {I8, I64, I64},       {U8, U32, U32},        {U8, I8, I16},          {U8, I16, I16},
      {U16, I8, I32},       {U16, I16, I32},       {U16, I64, I64},        {U32, I8, I64},
      {U32, I32, I64},      {U32, I64, I64},       {U64, I8, I64},         {U64, I64, I64},
      {U64, U8, U64},       {Index, I8, I64},      {Index, U8, I64},       {Index, U64, I64},
      {Index, F16, F16},    {I64, F8E4M3, F8E4M3}, {I64, F16, F16},        {U64, F32, F32},
      {I8, BF16, BF16},     {F16, BF16, F32},      {F8E4M3, F8E5M2, F32},  {F8E4M3, F16, F16},
      {F8E4M3, BF16, BF16}, {F8E5M2, F16, F16},    {F8E5M2, BF16, BF16},   {F8E5M2, F32, F32},
      {F16, F32, F32},      {BF16, F64, F64},      {F32, F64, F64},        {U32, F64, F64}};
  for (const Row& row : rows) {
    CAPTURE(name(row.a));
    CAPTURE(name(row.b));
    CHECK(name(promote(row.a, row.b)) == name(row.result));
  }
}

TEST_CASE("promotion laws") {
  std::set<std::set<DType>> not_associative;
  const auto at_most = [](DType a, DType b) { return promote(a, b) == b; };
  for (DType a : kAllDTypes) {
    CHECK(promote(a, a) == a);
    CHECK(promote(a, DType::Bool) == a);
    CHECK(promote(a, DType::F64) == DType::F64);
    CHECK(promote_all(std::array{a}) == a);
    for (DType b : kAllDTypes) {
      const DType both = promote(a, b);
      CHECK(both == promote(b, a));
      CHECK(at_most(a, both));
      CHECK(at_most(b, both));
      CHECK(promote_all(std::array{a, b}) == both);
      if (is_float(a) && !is_float(b)) CHECK(both == a);
      for (DType c : kAllDTypes) {
        const DType left = promote(promote(a, b), c);
        const DType right = promote(a, promote(b, c));
        if (left != right) not_associative.insert({a, b, c});
        if (at_most(a, b) && at_most(b, c)) CHECK(at_most(a, c));
        const DType all = promote_all(std::array{a, b, c});
        CHECK(all == promote_all(std::array{c, a, b}));
        CHECK(all == promote_all(std::array{b, a, c}));
        if (left == right) CHECK(all == left);
      }
    }
  }
  CHECK(promote_all({}) == DType::Bool);
  using enum DType;
  const std::set<std::set<DType>> expected{{F8E4M3, F8E5M2, F16}, {F8E4M3, F8E5M2, BF16}};
  CHECK(not_associative == expected);
  CHECK(promote_all(std::array{F8E4M3, F8E5M2, F16}) == F16);
  CHECK(promote_all(std::array{F8E4M3, F8E5M2, BF16}) == BF16);
}

// An integer type holds what promotes to it; the one exception is u64 into i64.
TEST_CASE("promotion between integers keeps values") {
  for (DType a : kAllDTypes) {
    for (DType b : kAllDTypes) {
      if (is_float(a) || is_float(b)) continue;
      const DType both = promote(a, b);
      if (both == DType::I64 && (a == DType::U64 || b == DType::U64)) continue;
      CAPTURE(name(a));
      CAPTURE(name(b));
      CHECK(min_value(both) <= std::min(min_value(a), min_value(b)));
      CHECK(max_value(both) >= std::max(max_value(a), max_value(b)));
    }
  }
}

// ---- codecs

TEST_CASE("every code survives decode and encode") {
  for (const FormatCase& format : kFormats) {
    CAPTURE(name(format.dtype));
    const std::vector<double> values = textbook_values(format);
    const uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
    const uint64_t overflow = values.size() - 1;
    Sweep sweep;
    for (uint64_t code = 0; code < 2 * sign; ++code) {
      const double value = format.decode(code);
      const uint64_t magnitude = code & (sign - 1);
      sweep.expect(value, format.encode(value), code);
      sweep.expect(value, encode(format.dtype, value), code);
      sweep.expect(std::signbit(value) == (code >= sign), value, code, code);
      const bool is_infinity = format.has_infinity && magnitude == overflow;
      const bool right = is_infinity             ? std::isinf(value)
                         : magnitude >= overflow ? std::isnan(value)
                                                 : std::fabs(value) == values[magnitude];
      sweep.expect(right, value, code, code);
      const bool by_dtype =
          std::bit_cast<uint64_t>(decode(format.dtype, code)) == std::bit_cast<uint64_t>(value);
      sweep.expect(by_dtype, value, code, code);
    }
    sweep.finish(2 * sign);
  }
}

TEST_CASE("landmarks of the narrow formats") {
  for (const FormatCase& format : kFormats) {
    CAPTURE(name(format.dtype));
    const uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
    CHECK(format.encode(0.0) == 0);
    CHECK(format.encode(-0.0) == sign);
    CHECK(format.encode(-kTiny) == sign);
    CHECK(format.encode(format.smallest_subnormal) == 1);
    CHECK(format.encode(format.smallest_subnormal / 2) == 0);
    CHECK(format.encode(std::nextafter(format.smallest_subnormal / 2, 1.0)) == 1);
    CHECK(format.encode(format.smallest_normal) == uint64_t{1} << format.mantissa_bits);
    CHECK(format.decode(format.encode(format.largest)) == format.largest);
    CHECK(std::isnan(format.decode(format.encode(kNan))));
    if (format.has_infinity) {
      CHECK(format.decode(format.encode(kInf)) == kInf);
      CHECK(format.decode(format.encode(-1e300)) == -kInf);
    } else {
      CHECK(std::isnan(format.decode(format.encode(kInf))));
      CHECK(std::isnan(format.decode(format.encode(-1e300))));
    }
  }
  CHECK(encode_f8e4m3(448.0) == 0x7e);
  CHECK(encode_f8e4m3(464.0) == 0x7e);
  CHECK(encode_f8e4m3(std::nextafter(464.0, kInf)) == 0x7f);
  CHECK(encode_f8e4m3(-465.0) == 0xff);
  CHECK(encode_f8e5m2(std::nextafter(61440.0, 0.0)) == 0x7b);
  CHECK(encode_f8e5m2(61440.0) == 0x7c);
  CHECK(encode_f16(65519.999) == 0x7bff);
  CHECK(encode_f16(65520.0) == 0x7c00);
  CHECK(encode_f16(kNan) == 0x7e00);
  CHECK(encode_bf16(kNan) == 0x7fc0);
}

TEST_CASE("encoding is the nearest value, ties to even") {
  for (const FormatCase& format : kFormats) {
    CAPTURE(name(format.dtype));
    const std::vector<double> values = textbook_values(format);
    const uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
    Sweep sweep;
    std::vector<double> inputs = traps(values);
    for (double input : random_doubles(100'000, 1)) inputs.push_back(input);
    for (int i = 0; i <= 100'000; ++i) inputs.push_back(i * 0.005);
    for (double magnitude : inputs) {
      for (double input : {magnitude, -magnitude}) {
        const uint64_t want = nearest_code(values, input) | (std::signbit(input) ? sign : 0);
        sweep.expect(input, format.encode(input), want);
        const double rounded = round_to(format.dtype, input);
        const double decoded = format.decode(want);
        const bool same = std::isnan(decoded) ? std::isnan(rounded) : rounded == decoded;
        sweep.expect(same, input, format.encode(rounded), want);
      }
    }
    sweep.finish(800'000);
  }
}

// The midpoint of 1 and its successor, plus too little for f32 to see, rounds up; through f32 it
// would become the midpoint and go down to even. One code further on the mirror image.
TEST_CASE("doubles are not rounded through f32") {
  for (const FormatCase& format : kFormats) {
    CAPTURE(name(format.dtype));
    const double ulp = two_to(-format.mantissa_bits);
    const uint64_t one = format.encode(1.0);
    for (double epsilon : {two_to(-30), two_to(-40), two_to(-52)}) {
      const double up = 1 + ulp / 2 + epsilon;
      const double down = 1 + 3 * ulp / 2 - epsilon;
      CHECK(format.encode(static_cast<double>(static_cast<float>(up))) == one);
      CHECK(format.encode(up) == one + 1);
      CHECK(format.encode(static_cast<double>(static_cast<float>(down))) == one + 2);
      CHECK(format.encode(down) == one + 1);
    }
  }
}

TEST_CASE("bf16 agrees with bit arithmetic on float") {
  Sweep sweep;
  std::mt19937 random(2);
  for (int i = 0; i < 500'000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 3 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // ties
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    const uint32_t even = (bits >> 16) & 1;
    sweep.expect(value, encode_bf16(value), (bits + 0x7fff + even) >> 16);
  }
  sweep.finish(400'000);
}

#ifdef __FLT16_MANT_DIG__
TEST_CASE("f16 agrees with the compiler's type") {
  __extension__ using Half = _Float16;
  Sweep sweep;
  std::vector<double> inputs = traps(textbook_values(kFormats[2]));
  for (double input : random_doubles(400'000, 3)) {
    inputs.push_back(input);
    inputs.push_back(std::fmod(input, 70000.0));
  }
  for (double input : inputs) {
    const Half half = static_cast<Half>(input);
    sweep.expect(input, encode_f16(input), std::bit_cast<uint16_t>(half));
  }
  for (uint32_t code = 0; code < 65536; ++code) {
    const double want = static_cast<double>(std::bit_cast<Half>(static_cast<uint16_t>(code)));
    const double got = decode_f16(static_cast<uint16_t>(code));
    sweep.expect(got == want || (std::isnan(got) && std::isnan(want)), got, code, code);
  }
  sweep.finish(800'000);
}
#endif

// The generic codec at float's own parameters, and the fast path beside it, against the hardware.
TEST_CASE("f32 agrees with the hardware") {
  const FloatFormat& format = format_of(DType::F32);
  Sweep sweep;
  std::mt19937_64 random(4);
  std::vector<double> inputs = random_doubles(300'000, 5);
  for (int i = 0; i < 300'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    const double middle =
        (static_cast<double>(value) + static_cast<double>(std::nextafterf(value, 0.0f))) / 2;
    for (double input : {static_cast<double>(value), middle, std::nextafter(middle, kInf),
                         std::nextafter(middle, -kInf)}) {
      inputs.push_back(input);
    }
  }
  for (double input : inputs) {
    const float want = static_cast<float>(input);
    const uint64_t code = std::bit_cast<uint32_t>(want);
    sweep.expect(input, encode(format, input), code);
    sweep.expect(input, encode(DType::F32, input), code);
    sweep.expect(decode(format, code) == want, input, code, code);
    sweep.expect(decode(DType::F32, code) == want, input, code, code);
    sweep.expect(round_to(DType::F32, input) == want, input, code, code);
  }
  for (uint64_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
    sweep.expect(kNan, encode(DType::F32, decode(DType::F32, nan)), nan);
    sweep.expect(kNan, encode(DType::F64, decode(DType::F64, nan << 32)), nan << 32);
  }
  sweep.finish(5'000'000);
}

// ---- constants

TEST_CASE("constants are canonical") {
  const uint64_t quiet_nan = 0x7ff8000000000000u;
  for (DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    CHECK(Scalar::of(dtype, 1.0) == Scalar::of_int(dtype, 1));
    CHECK(Scalar::of(dtype, 1.0).dtype() == dtype);
    CHECK(Scalar::of(dtype, 1.0).as_double() == 1.0);
    CHECK(Scalar::of(dtype, 1.0).as_int() == 1);
    for (DType other : kAllDTypes) {
      CHECK((Scalar::of_int(dtype, 1) == Scalar::of_int(other, 1)) == (dtype == other));
    }
    for (Scalar value : {Scalar::of_int(dtype, 77), lowest(dtype), highest(dtype)}) {
      CHECK(Scalar::from_bits(dtype, value.bits()) == value);
    }
    if (!is_float(dtype)) {
      CHECK(Scalar::of(dtype, -0.0) == Scalar::of(dtype, 0.0));
      continue;
    }
    CHECK(Scalar::of(dtype, -0.0) != Scalar::of(dtype, 0.0));
    for (uint64_t nan :
         {quiet_nan, 0xfff8000000000000u, 0x7ff0000000000001u, 0x7fffffffffffffffu}) {
      CHECK(Scalar::of(dtype, std::bit_cast<double>(nan)).bits() == quiet_nan);
    }
  }
  CHECK(Scalar{} == Scalar::of_int(DType::Bool, 0));
}

TEST_CASE("text of constants") {
  struct Row {
    DType dtype;
    double value;
    std::string_view text;
  };
  const Row rows[] = {{DType::Bool, 0, "false"},
                      {DType::Bool, 3, "true"},
                      {DType::I8, -128, "-128"},
                      {DType::U8, 255, "255"},
                      {DType::I64, -two_to(63), "-9223372036854775808"},
                      {DType::I64, two_to(63), "9223372036854775807"},
                      {DType::U64, two_to(64), "18446744073709551615"},
                      {DType::Index, 12, "12"},
                      {DType::F32, 0.0, "0.0"},
                      {DType::F32, -0.0, "-0.0"},
                      {DType::F32, 1.0, "1.0"},
                      {DType::F32, 0.1, "0.1"},
                      {DType::F32, 1e10, "1e+10"},
                      {DType::F32, kNan, "nan"},
                      {DType::F32, kInf, "inf"},
                      {DType::F32, -1e300, "-inf"},
                      {DType::F32, 16777216.0, "16777216.0"},
                      {DType::F64, 0.1, "0.1"},
                      {DType::F64, kTiny, "5e-324"},
                      {DType::F64, 1e22, "1e+22"},
                      {DType::F64, -123456.75, "-123456.75"},
                      {DType::F16, 65504, "65504.0"},
                      {DType::F16, 0.1, "0.099975586"},
                      {DType::BF16, 3.14159, "3.140625"},
                      {DType::F8E4M3, 448, "448.0"},
                      {DType::F8E4M3, -500, "nan"},
                      {DType::F8E5M2, 1e9, "inf"},
                      {DType::F8E5M2, two_to(-16), "1.5258789e-05"}};
  for (const Row& row : rows) {
    CAPTURE(name(row.dtype));
    CAPTURE(row.text);
    const Scalar value = Scalar::of(row.dtype, row.value);
    CHECK(to_text(value) == row.text);
    CHECK(parse_scalar(row.dtype, row.text) == value);
  }
}

TEST_CASE("text that is no constant") {
  struct Row {
    DType dtype;
    std::string_view text;
  };
  const Row rows[] = {
      {DType::Bool, "1"},      {DType::Bool, "True"},     {DType::Bool, ""},
      {DType::I8, "128"},      {DType::I8, "-129"},       {DType::I8, "1.0"},
      {DType::I8, "+1"},       {DType::I8, " 1"},         {DType::I8, "1 "},
      {DType::I8, ""},         {DType::I8, "-"},          {DType::I8, "0x1"},
      {DType::U8, "-1"},       {DType::U8, "256"},        {DType::U64, "18446744073709551616"},
      {DType::U64, "-0"},      {DType::I64, "true"},      {DType::I64, "9223372036854775808"},
      {DType::Index, "1e3"},   {DType::F32, ""},          {DType::F32, "-"},
      {DType::F32, "."},       {DType::F32, ".5"},        {DType::F32, "1."},
      {DType::F32, "1e"},      {DType::F32, "1e+"},       {DType::F32, "+1.0"},
      {DType::F32, " 1.0"},    {DType::F32, "1.0 "},      {DType::F32, "1,5"},
      {DType::F32, "0x1p3"},   {DType::F32, "NaN"},       {DType::F32, "-nan"},
      {DType::F32, "nan(1)"},  {DType::F32, "infinity"},  {DType::F32, "1.0f"},
      {DType::F32, "1e39"},    {DType::F64, "1e309"},     {DType::F16, "65520.0"},
      {DType::F8E5M2, "1e6"},  {DType::F8E4M3, "464.01"}, {DType::F8E4M3, "inf"},
      {DType::F32, "1.0\0"sv}, {DType::F8E4M3, "-inf"},   {DType::F32, "--1.0"}};
  for (const Row& row : rows) {
    CAPTURE(name(row.dtype));
    CAPTURE(row.text);
    CHECK_FALSE(parse_scalar(row.dtype, row.text).has_value());
  }
  // Not what to_text writes, yet plain: whole numbers, a capital E, digits beyond the precision.
  CHECK(parse_scalar(DType::F32, "7") == Scalar::of(DType::F32, 7.0));
  CHECK(parse_scalar(DType::F32, "25E-2") == Scalar::of(DType::F32, 0.25));
  CHECK(parse_scalar(DType::F64, "1e-400") == Scalar::of(DType::F64, 0.0));
  CHECK(parse_scalar(DType::F64, std::string(3000, '0') + "1.5") == Scalar::of(DType::F64, 1.5));
  // Just above the midpoint of 1 and its f32 successor, nearer than f64 resolves: rounds up once.
  CHECK(parse_scalar(DType::F32, "1.00000005960464477539062500001") ==
        Scalar::of(DType::F32, 1 + two_to(-23)));
}

TEST_CASE("print and parse are inverse") {
  std::mt19937_64 random(6);
  for (DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    Sweep sweep;
    const auto round_trip = [&](Scalar value) {
      const std::string text = to_text(value);
      const std::optional<Scalar> back = parse_scalar(dtype, text);
      const bool marked = !is_float(dtype) || text.find_first_of(".en") != std::string::npos;
      sweep.expect(back == value && marked, value.as_double(), back ? back->bits() : 0,
                   value.bits());
    };
    if (is_float(dtype)) {
      const bool is_narrow = byte_size(dtype) <= 2;
      const uint64_t count = is_narrow ? uint64_t{1} << (8 * byte_size(dtype)) : 200'000;
      for (uint64_t i = 0; i < count; ++i) {
        round_trip(Scalar::of(dtype, decode(dtype, is_narrow ? i : random())));
      }
    } else {
      for (int i = 0; i < 1000; ++i)
        round_trip(Scalar::of_int(dtype, static_cast<int64_t>(random())));
      for (int64_t value : {int64_t{0}, int64_t{-1}, kI64Min, kI64Max}) {
        round_trip(Scalar::of_int(dtype, value));
      }
    }
    round_trip(lowest(dtype));
    round_trip(highest(dtype));
    sweep.finish(258);
  }
}

// ---- casts

TEST_CASE("cast from float to integer truncates and saturates") {
  for (DType to : kAllDTypes) {
    if (!is_int(to)) continue;
    CAPTURE(name(to));
    const int width = static_cast<int>(byte_size(to)) * 8;
    const double past = two_to(is_signed(to) ? width - 1 : width);
    const double least = is_signed(to) ? -past : 0.0;
    const int64_t minimum = is_signed(to) ? kI64Min >> (64 - width) : 0;
    const uint64_t maximum =
        is_signed(to) ? uint64_t(kI64Max) >> (64 - width) : UINT64_MAX >> (64 - width);
    struct Row {
      double value;
      uint64_t want;
    };
    const double below = std::nextafter(past, 0.0);
    const Row rows[] = {
        {kNan, 0},
        {-kNan, 0},
        {0.0, 0},
        {-0.0, 0},
        {kTiny, 0},
        {-kTiny, 0},
        {0.999, 0},
        {-0.999, 0},
        {1.5, 1},
        {2.5, 2},
        {-1.5, is_signed(to) ? UINT64_MAX : 0},
        {127.99, 127},
        {kInf, maximum},
        {-kInf, static_cast<uint64_t>(minimum)},
        {1e300, maximum},
        {-1e300, static_cast<uint64_t>(minimum)},
        {past, maximum},
        {past - 1.5, width == 64 ? maximum : maximum - 1},
        {below, width == 64 ? static_cast<uint64_t>(past / 2) * 2 - (is_signed(to) ? 1024 : 2048)
                            : maximum},
        {least, static_cast<uint64_t>(minimum)},
        {least - 0.5, static_cast<uint64_t>(minimum)}};
    for (const Row& row : rows) {
      CAPTURE(row.value);
      CHECK(Scalar::of(to, row.value).bits() == row.want);
      CHECK(cast(Scalar::of(DType::F64, row.value), to).bits() == row.want);
      CHECK(cast(Scalar::of(DType::F64, row.value), to).dtype() == to);
    }
  }
  CHECK(cast(Scalar::of(DType::F16, kInf), DType::I32).as_int() == INT32_MAX);
  CHECK(cast(Scalar::of(DType::F8E4M3, 1e9), DType::I32).as_int() == 0);
  CHECK(Scalar::of(DType::F32, -1e30).as_int() == kI64Min);
  CHECK(Scalar::of(DType::F32, kNan).as_int() == 0);
}

TEST_CASE("cast between integers wraps") {
  const int64_t values[] = {0,       1,         -1,        127,        128,     -128,    -129,
                            255,     256,       32767,     32768,      -32769,  65535,   65536,
                            1 << 30, INT32_MAX, INT32_MIN, UINT32_MAX, kI64Min, kI64Max, 1ll << 40};
  for (int64_t value : values) {
    CAPTURE(value);
    struct Row {
      DType dtype;
      int64_t want;
    };
    const Row rows[] = {{DType::I8, static_cast<int8_t>(value)},
                        {DType::I16, static_cast<int16_t>(value)},
                        {DType::I32, static_cast<int32_t>(value)},
                        {DType::I64, value},
                        {DType::U8, static_cast<uint8_t>(value)},
                        {DType::U16, static_cast<uint16_t>(value)},
                        {DType::U32, static_cast<uint32_t>(value)},
                        {DType::U64, value},
                        {DType::Bool, value != 0}};
    for (const Row& row : rows) {
      CAPTURE(name(row.dtype));
      CHECK(Scalar::of_int(row.dtype, value).as_int() == row.want);
      for (DType from : {DType::I64, DType::U64, DType::Index}) {
        CHECK(cast(Scalar::of_int(from, value), row.dtype).as_int() == row.want);
      }
    }
  }
  CHECK(cast(Scalar::of_int(DType::I8, -1), DType::U64).bits() == UINT64_MAX);
  CHECK(cast(Scalar::of_int(DType::U8, 255), DType::I64).as_int() == 255);
  CHECK(cast(Scalar::of_int(DType::I8, -1), DType::U16).as_int() == 65535);
}

TEST_CASE("cast to and from bool") {
  struct Row {
    double value;
    bool want;
  };
  const Row rows[] = {{0.0, false},  {-0.0, false}, {kNan, true}, {kInf, true},
                      {-kInf, true}, {1.0, true},   {0.25, true}, {-2.0, true}};
  for (DType from : kAllDTypes) {
    CAPTURE(name(from));
    CHECK(cast(Scalar::of_int(DType::Bool, 1), from).as_double() == 1.0);
    CHECK(cast(Scalar::of_int(DType::Bool, 0), from) == Scalar::of(from, 0.0));
    if (!is_float(from)) continue;
    for (const Row& row : rows) {
      CAPTURE(row.value);
      CHECK(cast(Scalar::of(from, row.value), DType::Bool).as_int() == row.want);
    }
  }
  CHECK(Scalar::of(DType::Bool, kTiny).as_int() == 1);
  CHECK(cast(Scalar::of_int(DType::U64, kI64Min), DType::Bool).as_int() == 1);
}

// 2^62 + half an ulp of the target is a tie; the integer next to it is not, but rounds to the same
// double, so a path through f64 would tie and go to even.
TEST_CASE("cast from integer to float rounds once") {
  struct Row {
    DType to;
    int mantissa_bits;
  };
  const Row rows[] = {{DType::F32, 23}, {DType::BF16, 7}, {DType::F64, 52}};
  for (const Row& row : rows) {
    CAPTURE(name(row.to));
    for (int top : {60, 62, 63}) {
      const uint64_t one = uint64_t{1} << top;
      const uint64_t half = one >> row.mantissa_bits >> 1;
      struct Case {
        uint64_t value;
        double want;
      };
      const double ulp = two_to(top - row.mantissa_bits);
      const Case cases[] = {{one, two_to(top)},
                            {one + half - 1, two_to(top)},
                            {one + half, two_to(top)},
                            {one + half + 1, two_to(top) + ulp},
                            {one + 3 * half - 1, two_to(top) + ulp},
                            {one + 3 * half, two_to(top) + 2 * ulp}};
      for (const Case& trap : cases) {
        CAPTURE(trap.value);
        const int64_t as_signed = static_cast<int64_t>(trap.value);
        CHECK(cast(Scalar::of_int(DType::U64, as_signed), row.to).as_double() == trap.want);
        if (as_signed < 0) continue;
        CHECK(Scalar::of_int(row.to, as_signed).as_double() == trap.want);
        CHECK(Scalar::of_int(row.to, -as_signed).as_double() == -trap.want);
      }
    }
  }
  CHECK(Scalar::of_int(DType::F32, kI64Min).as_double() == -two_to(63));
  CHECK(Scalar::of_int(DType::F16, kI64Min).as_double() == -kInf);
  CHECK(std::isnan(Scalar::of_int(DType::F8E4M3, kI64Max).as_double()));
  CHECK(cast(Scalar::of_int(DType::U64, -1), DType::F64).as_double() == two_to(64));
  CHECK(Scalar::of_int(DType::U64, -1).as_double() == two_to(64));
  CHECK(Scalar::of_int(DType::F16, 2049).as_double() == 2048.0);
  CHECK(Scalar::of_int(DType::F16, 65520).as_double() == kInf);
}

TEST_CASE("random integers cast to float as the hardware does") {
  std::mt19937_64 random(7);
  Sweep sweep;
  for (int i = 0; i < 300'000; ++i) {
    const uint64_t bits = random() >> (random() % 64);
    const int64_t value = static_cast<int64_t>(bits);
    const Scalar as_signed = Scalar::of_int(DType::I64, value);
    const Scalar as_unsigned = Scalar::of_int(DType::U64, value);
    const auto check = [&](Scalar from, DType to, double want) {
      const double got = cast(from, to).as_double();
      sweep.expect(got == want, want, std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(want));
    };
    check(as_signed, DType::F32, static_cast<float>(value));
    check(as_signed, DType::F64, static_cast<double>(value));
    check(as_unsigned, DType::F32, static_cast<float>(bits));
    check(as_unsigned, DType::F64, static_cast<double>(bits));
  }
  sweep.finish(1'200'000);
}

TEST_CASE("cast between floats") {
  const double values[] = {kNan,
                           kInf,
                           -kInf,
                           0.0,
                           -0.0,
                           kTiny,
                           1.0,
                           -1.5,
                           two_to(-24),
                           448.0,
                           464.0,
                           65504.0,
                           1e39,
                           0x1p-149,
                           0x1p-133,
                           0.1,
                           1 + two_to(-24) + two_to(-52)};
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      if (!is_float(from) || !is_float(to)) continue;
      for (double value : values) {
        const Scalar source = Scalar::of(from, value);
        const Scalar result = cast(source, to);
        CAPTURE(name(from));
        CAPTURE(name(to));
        CAPTURE(value);
        CHECK(result == Scalar::of(to, source.as_double()));
        if (std::isnan(source.as_double())) CHECK(std::isnan(result.as_double()));
        if (source.as_double() == 0) {
          CHECK(result.as_double() == 0);
          CHECK(std::signbit(result.as_double()) == std::signbit(source.as_double()));
        }
        if (promote(from, to) == to) CHECK(cast(result, from) == source);
      }
    }
  }
}

TEST_CASE("cast to index is exact or an error") {
  struct Row {
    Scalar value;
    std::optional<int64_t> want;
  };
  const Row rows[] = {{Scalar::of_int(DType::I64, kI64Min), kI64Min},
                      {Scalar::of_int(DType::U64, kI64Max), kI64Max},
                      {Scalar::of_int(DType::U64, kI64Min), std::nullopt},
                      {Scalar::of_int(DType::U32, -1), UINT32_MAX},
                      {Scalar::of_int(DType::Bool, 1), 1},
                      {Scalar::of(DType::F64, -2.75), -2},
                      {Scalar::of(DType::F64, -two_to(63)), kI64Min},
                      {Scalar::of(DType::F64, two_to(63)), std::nullopt},
                      {Scalar::of(DType::F32, kNan), std::nullopt},
                      {Scalar::of(DType::F16, -kInf), std::nullopt}};
  for (const Row& row : rows) {
    CAPTURE(to_text(row.value));
    CHECK(can_cast(row.value, DType::Index) == row.want.has_value());
    CHECK(can_cast(row.value, DType::I8));
    if (row.want) {
      CHECK(cast(row.value, DType::Index).as_int() == *row.want);
    } else {
      CHECK_THROWS_AS(cast(row.value, DType::Index), std::overflow_error);
    }
  }
}
