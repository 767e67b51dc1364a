// Conversions between dtypes and between constants and text.
// Must not let a second rounding in: each path from the source to the rounded value has one.
#include "ir/scalar.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "ir/float_formats.h"

namespace anneal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTwoTo63 = 9223372036854775808.0;

uint64_t float_bits(double rounded) {
  if (std::isnan(rounded)) return std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  return std::bit_cast<uint64_t>(rounded);
}

// The low bits of an integer that fit the dtype, extended to 64 by its sign.
uint64_t wrap(DType dtype, uint64_t bits) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(byte_size(dtype));
  if (is_unsigned(dtype)) return bits << unused >> unused;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
}

// An integer rounded once to a float dtype. Below 2^53 double is exact. Above, the low 11 bits are
// folded into bit 11 ("round to odd"): that keeps at least 42 bits and lies on the same side of
// every midpoint of f32 or narrower as the integer did, so the one rounding that follows is the
// true one.
double round_magnitude(DType dtype, uint64_t magnitude) {
  constexpr uint64_t kFolded = (uint64_t{1} << 11) - 1;
  if (dtype != DType::F64 && magnitude >> 53 != 0) {
    const uint64_t sticky = (magnitude & kFolded) != 0 ? kFolded + 1 : 0;
    magnitude = (magnitude & ~kFolded) | sticky;
  }
  return round_to(dtype, static_cast<double>(magnitude));
}

double round_signed(DType dtype, int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  return value < 0 ? -round_magnitude(dtype, -bits) : round_magnitude(dtype, bits);
}

// Truncation toward zero with saturation. The ends are compared as powers of two, which are exact
// doubles where the greatest 64-bit integers are not.
uint64_t saturate(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const double least = static_cast<double>(min_value(dtype));
  const uint64_t half = max_value(dtype) / 2 + 1;
  const double past_greatest = 2 * static_cast<double>(half);
  if (value <= least) return static_cast<uint64_t>(min_value(dtype));
  if (value >= past_greatest) return max_value(dtype);
  if (is_unsigned(dtype)) return static_cast<uint64_t>(value);
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

[[noreturn]] void fail_index(const std::string& value) {
  throw std::overflow_error("cast: " + value + " is not in the range of index, which is int64");
}

// NaN compares false on both sides.
bool fits_index(double value) { return value >= -kTwoTo63 && value < kTwoTo63; }

std::string text_of_float(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const std::to_chars_result end =
      dtype == DType::F64
          ? std::to_chars(buffer, buffer + sizeof buffer, value)
          : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  assert(end.ec == std::errc{});
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Drops the digits that `text` begins with and says whether there were any.
bool skip_digits(std::string_view& text) {
  const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(count);
  return count != 0;
}

bool skip_one_of(std::string_view& text, std::string_view choices) {
  if (text.empty() || choices.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// -?digits(.digits)?([eE][+-]?digits)?
bool is_decimal(std::string_view text) {
  skip_one_of(text, "-");
  if (!skip_digits(text)) return false;
  if (skip_one_of(text, ".") && !skip_digits(text)) return false;
  if (skip_one_of(text, "eE")) {
    skip_one_of(text, "+-");
    if (!skip_digits(text)) return false;
  }
  return text.empty();
}

std::optional<double> parse_float(DType dtype, std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf") {
    if (!format_of(dtype).has_infinity) return std::nullopt;
    return text == "inf" ? kInfinity : -kInfinity;
  }
  if (!is_decimal(text)) return std::nullopt;
  // strtod reads the point of the process's locale.
  std::string copy(text);
  if (const size_t point = copy.find('.'); point != std::string::npos) {
    copy.replace(point, 1, std::localeconv()->decimal_point);
  }
  const double value = dtype == DType::F32 ? static_cast<double>(std::strtof(copy.c_str(), nullptr))
                                           : round_to(dtype, std::strtod(copy.c_str(), nullptr));
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Scalar Scalar::of(DType dtype, double value) {
  switch (kind(dtype)) {
    case DTypeKind::Bool: return {dtype, value != 0};
    case DTypeKind::Float: return {dtype, float_bits(round_to(dtype, value))};
    case DTypeKind::Index:
      if (!fits_index(value)) fail_index(text_of_float(DType::F64, value));
      [[fallthrough]];
    case DTypeKind::Signed:
    case DTypeKind::Unsigned: return {dtype, saturate(dtype, value)};
  }
  return {};
}

Scalar Scalar::of_int(DType dtype, int64_t value) {
  switch (kind(dtype)) {
    case DTypeKind::Bool: return {dtype, value != 0};
    case DTypeKind::Float: return {dtype, float_bits(round_signed(dtype, value))};
    case DTypeKind::Index:
    case DTypeKind::Signed:
    case DTypeKind::Unsigned: return {dtype, wrap(dtype, static_cast<uint64_t>(value))};
  }
  return {};
}

bool Scalar::is_canonical(DType dtype, uint64_t bits) {
  if (is_float(dtype)) return of(dtype, std::bit_cast<double>(bits)).bits_ == bits;
  return of_int(dtype, static_cast<int64_t>(bits)).bits_ == bits;
}

double Scalar::as_double() const {
  if (is_float(dtype_)) return std::bit_cast<double>(bits_);
  if (is_unsigned(dtype_)) return static_cast<double>(bits_);
  return static_cast<double>(static_cast<int64_t>(bits_));
}

int64_t Scalar::as_int() const {
  if (!is_float(dtype_)) return static_cast<int64_t>(bits_);
  return static_cast<int64_t>(saturate(DType::I64, as_double()));
}

Scalar cast(Scalar value, DType to) {
  if (is_float(value.dtype())) return Scalar::of(to, value.as_double());
  const bool reads_as_negative = is_unsigned(value.dtype()) && value.as_int() < 0;
  if (reads_as_negative && is_float(to)) return Scalar::of(to, round_magnitude(to, value.bits()));
  if (reads_as_negative && is_index(to)) fail_index(to_text(value));
  return Scalar::of_int(to, value.as_int());
}

bool can_cast(Scalar value, DType to) {
  if (!is_index(to)) return true;
  if (is_float(value.dtype())) return fits_index(value.as_double());
  return !is_unsigned(value.dtype()) || value.as_int() >= 0;
}

Scalar lowest(DType dtype) {
  if (!is_float(dtype)) return Scalar::of_int(dtype, min_value(dtype));
  return Scalar::of(dtype, format_of(dtype).has_infinity ? -kInfinity : lowest_finite(dtype));
}

Scalar highest(DType dtype) {
  if (!is_float(dtype)) return Scalar::of_int(dtype, static_cast<int64_t>(max_value(dtype)));
  return Scalar::of(dtype, format_of(dtype).has_infinity ? kInfinity : largest_finite(dtype));
}

std::string to_text(Scalar value) {
  if (is_bool(value.dtype())) return value.bits() != 0 ? "true" : "false";
  if (is_float(value.dtype())) return text_of_float(value.dtype(), value.as_double());
  if (is_unsigned(value.dtype())) return std::to_string(value.bits());
  return std::to_string(value.as_int());
}

std::optional<Scalar> parse_scalar(DType dtype, std::string_view text) {
  if (is_bool(dtype)) {
    if (text != "true" && text != "false") return std::nullopt;
    return Scalar::of_int(dtype, text == "true");
  }
  if (is_float(dtype)) {
    const std::optional<double> value = parse_float(dtype, text);
    if (!value) return std::nullopt;
    return Scalar::of(dtype, *value);
  }
  if (is_unsigned(dtype)) {
    const std::optional<uint64_t> value = parse_integer<uint64_t>(text);
    if (!value || *value > max_value(dtype)) return std::nullopt;
    return Scalar::of_int(dtype, static_cast<int64_t>(*value));
  }
  const std::optional<int64_t> value = parse_integer<int64_t>(text);
  if (!value || Scalar::of_int(dtype, *value).as_int() != *value) return std::nullopt;
  return Scalar::of_int(dtype, *value);
}

}  // namespace anneal
