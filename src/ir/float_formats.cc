// One encoder and one decoder serve every float format narrower than double; see FloatFormat.
// Must not round through float: a second rounding moves values that lie near a midpoint.
#include "ir/float_formats.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace anneal {
namespace {

constexpr FloatFormat kDouble = format_of(DType::F64);
constexpr uint64_t kDoubleMantissaMask = kDouble.hidden_bit() - 1;

// significand / 2^shift, to nearest with ties to even; shift is at least 1.
uint64_t shift_right_to_even(uint64_t significand, int shift) {
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = significand & (2 * half - 1);
  const uint64_t kept = significand >> shift;
  return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

// A NaN's payload moves with its most significant bit, the quiet bit, in place.
uint64_t encode_nan(const FloatFormat& format, uint64_t double_mantissa) {
  if (!format.has_infinity) return format.overflow_code();
  const uint64_t payload = double_mantissa >> (kDouble.mantissa_bits - format.mantissa_bits);
  const uint64_t quiet = format.hidden_bit() >> 1;
  return format.overflow_code() + (payload != 0 ? payload : quiet);
}

}  // namespace

uint64_t encode(const FloatFormat& format, double value) {
  assert(format.mantissa_bits < kDouble.mantissa_bits);
  assert(format.exponent_bits < kDouble.exponent_bits);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (bits & kDouble.sign_code()) != 0 ? format.sign_code() : 0;
  const uint64_t magnitude = bits & ~kDouble.sign_code();
  const uint64_t mantissa = magnitude & kDoubleMantissaMask;

  if (magnitude > kDouble.overflow_code()) return sign | encode_nan(format, mantissa);
  if (magnitude == kDouble.overflow_code()) return sign | format.overflow_code();
  // Zero, or a subnormal double: less than half of any narrower format's smallest number.
  if (magnitude < kDouble.hidden_bit()) return sign;

  const uint64_t significand = kDouble.hidden_bit() | mantissa;
  const int exponent = static_cast<int>(magnitude >> kDouble.mantissa_bits) - kDouble.bias();
  const int below_normal = std::max(format.min_exponent() - exponent, 0);
  const int above_normal = std::max(exponent - format.min_exponent(), 0);
  // A shift of 54 already rounds every 53-bit significand to zero.
  const int shift = std::min(kDouble.mantissa_bits - format.mantissa_bits + below_normal, 54);
  const uint64_t kept = shift_right_to_even(significand, shift);
  // A normal `kept` carries its hidden bit, which adds 1 to the exponent field; a subnormal one has
  // none. Rounding up to the next power of two, or to the smallest normal, carries the same way.
  const uint64_t code = (static_cast<uint64_t>(above_normal) << format.mantissa_bits) + kept;
  return sign | std::min(code, format.overflow_code());
}

double decode(const FloatFormat& format, uint64_t code) {
  assert(format.mantissa_bits < kDouble.mantissa_bits);
  const uint64_t sign = (code & format.sign_code()) != 0 ? kDouble.sign_code() : 0;
  const uint64_t magnitude = code & (format.sign_code() - 1);
  const uint64_t mantissa = magnitude & (format.hidden_bit() - 1);
  const int widening = kDouble.mantissa_bits - format.mantissa_bits;

  uint64_t bits = 0;
  if (magnitude >= format.overflow_code()) {
    bits = kDouble.overflow_code() | (mantissa << widening);
  } else if (magnitude < format.hidden_bit()) {
    bits = std::bit_cast<uint64_t>(
        std::ldexp(static_cast<double>(mantissa), format.min_exponent() - format.mantissa_bits));
  } else {
    const int rebias = kDouble.bias() - format.bias();
    bits = (magnitude << widening) + (static_cast<uint64_t>(rebias) << kDouble.mantissa_bits);
  }
  return std::bit_cast<double>(sign | bits);
}

uint64_t encode(DType dtype, double value) {
  if (dtype == DType::F64) return std::bit_cast<uint64_t>(value);
  // The host's conversions would turn signalling NaNs quiet, here and in decode.
  if (dtype == DType::F32 && !std::isnan(value)) {
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
  return encode(format_of(dtype), value);
}

double decode(DType dtype, uint64_t code) {
  if (dtype == DType::F64) return std::bit_cast<double>(code);
  if (dtype == DType::F32) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(code));
    if (!std::isnan(value)) return value;
  }
  return decode(format_of(dtype), code);
}

uint16_t encode_f16(double value) {
  return static_cast<uint16_t>(encode(format_of(DType::F16), value));
}
double decode_f16(uint16_t code) { return decode(format_of(DType::F16), code); }

uint16_t encode_bf16(double value) {
  return static_cast<uint16_t>(encode(format_of(DType::BF16), value));
}
double decode_bf16(uint16_t code) { return decode(format_of(DType::BF16), code); }

uint8_t encode_f8e4m3(double value) {
  return static_cast<uint8_t>(encode(format_of(DType::F8E4M3), value));
}
double decode_f8e4m3(uint8_t code) { return decode(format_of(DType::F8E4M3), code); }

uint8_t encode_f8e5m2(double value) {
  return static_cast<uint8_t>(encode(format_of(DType::F8E5M2), value));
}
double decode_f8e5m2(uint8_t code) { return decode(format_of(DType::F8E5M2), code); }

}  // namespace anneal
