// The rows of the dtype table, their limits and promotion. Must not compute an expectation with the
// function under test.
#include "ir/dtype.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/scalar.h"

using namespace anneal;
using namespace std::string_view_literals;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

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
