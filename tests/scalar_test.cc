// Constants and casts between all dtypes, against references that share no code with them. Must not
// compute an expectation with the function under test.
#include "ir/scalar.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/dtype.h"
#include "ir/float_formats.h"
#include "sweep.h"

using namespace anneal;
using namespace std::string_view_literals;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

}  // namespace

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
