// The codecs of the narrow floats, against a sorted list of each format's values and the hardware.
// Must not compute an expectation with the function under test.
#include "ir/float_formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "ir/dtype.h"
#include "ir/scalar.h"
#include "sweep.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

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
