// Bit-exact codecs between double and every float dtype: one rounding, to nearest, ties to even.
// Must not do arithmetic on encoded values, nor depend on the host having the narrow types.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "ir/dtype.h"

namespace anneal {

// A sign bit, `exponent_bits` of biased exponent, `mantissa_bits` of fraction; exponent field 0 is
// subnormal. With infinity the top exponent holds infinity and the NaNs, as in IEEE 754. Without it
// the top exponent holds numbers and only the code of all ones is NaN.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  bool has_infinity = false;

  constexpr int width() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  // The exponent of the smallest normal number, which the subnormals share.
  constexpr int min_exponent() const { return 1 - bias(); }
  constexpr uint64_t sign_code() const { return uint64_t{1} << (width() - 1); }
  constexpr uint64_t hidden_bit() const { return uint64_t{1} << mantissa_bits; }
  // The positive code of whatever is too large: infinity, or NaN in a format without one.
  constexpr uint64_t overflow_code() const {
    return has_infinity ? sign_code() - hidden_bit() : sign_code() - 1;
  }
};

inline constexpr std::array<FloatFormat, kDTypeCount> kFloatFormats = [] {
  std::array<FloatFormat, kDTypeCount> formats{};
#define FLOAT_FORMAT(name, exponent, mantissa, infinity) \
  formats[static_cast<size_t>(DType::name)] = {exponent, mantissa, infinity};
#include "ir/dtypes.def"
  return formats;
}();

static_assert(
    [] {
      for (DType dtype : kAllDTypes) {
        const int width = kFloatFormats[static_cast<size_t>(dtype)].width();
        if (width != (is_float(dtype) ? static_cast<int>(byte_size(dtype)) * 8 : 1)) return false;
      }
      return true;
    }(),
    "each Float in dtypes.def needs a FLOAT_FORMAT row of its width, and nothing else has one");

constexpr const FloatFormat& format_of(DType dtype) {
  assert(is_float(dtype));
  return kFloatFormats[static_cast<size_t>(dtype)];
}

// The codec for every format narrower than double. NaNs keep their sign and the payload bits that
// fit, so each code survives decode and encode; a NaN whose remaining payload is zero becomes the
// quiet one.
uint64_t encode(const FloatFormat& format, double value);
double decode(const FloatFormat& format, uint64_t code);

// The same by dtype; the code fills the low bits. F32 and F64 use the host's own types.
uint64_t encode(DType dtype, double value);
double decode(DType dtype, uint64_t code);

uint16_t encode_f16(double value);
double decode_f16(uint16_t code);
uint16_t encode_bf16(double value);
double decode_bf16(uint16_t code);
// Beyond 464, which ties to 448, the result is NaN, as in PyTorch and ml_dtypes.
uint8_t encode_f8e4m3(double value);
double decode_f8e4m3(uint8_t code);
uint8_t encode_f8e5m2(double value);
double decode_f8e5m2(uint8_t code);

// The value of `dtype` nearest to `value`: decode(dtype, encode(dtype, value)), up to NaN payloads.
inline double round_to(DType dtype, double value) {
  if (dtype == DType::F32) return static_cast<double>(static_cast<float>(value));
  if (dtype == DType::F64) return value;
  const FloatFormat& format = format_of(dtype);
  return decode(format, encode(format, value));
}

}  // namespace anneal
