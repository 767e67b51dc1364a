// Casts and bitcasts as LLVM instructions, by the definition of cast() in ir/scalar.h. Every path
// from the source to the rounded value has one rounding.
#include <bit>
#include <cmath>

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/arithmetic.h"
#include "ir/float_formats.h"

namespace anneal {
namespace {

using llvm::Value;

constexpr FloatFormat kSingle = format_of(DType::F32);

// The f32 2^exponent as a double, for ConstantFP.
double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

}  // namespace

Value* Arithmetic::cast(Value* value, DType from, DType to) {
  if (from == to) return value;
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Type* type = value_type(context, to, lanes_of(value));
  if (is_float(from)) {
    if (is_narrow_float(from)) return cast(widen(value, from), DType::F32, to);
    if (is_bool(to)) {
      return builder_.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0));
    }
    if (is_narrow_float(to)) return narrow(from == DType::F64 ? round_to_odd(value) : value, to);
    if (is_float(to)) return builder_.CreateFPCast(value, type);
    return float_to_int(value, to);
  }
  if (is_bool(to)) return builder_.CreateICmpNE(value, int_constant(value, 0));
  if (is_float(to)) return int_to_float(value, from, to);
  const bool extends_sign = is_signed(from) || is_index(from);
  return builder_.CreateIntCast(value, type, extends_sign);
}

// LLVM's own saturating conversion takes vectors apart. Outside the range the plain one gives
// nothing of use, but nobody looks at it there. The ends are compared as powers of two, which are
// exact.
Value* Arithmetic::float_to_int(Value* value, DType to) {
  llvm::Type* type = value_type(builder_.getContext(), to, lanes_of(value));
  auto bound = [&](double number) { return llvm::ConstantFP::get(value->getType(), number); };
  auto integer = [&](uint64_t bits) { return llvm::ConstantInt::get(type, bits); };
  const uint64_t half = max_value(to) / 2 + 1;
  const double past = 2 * static_cast<double>(half);
  Value* inside =
      is_unsigned(to) ? builder_.CreateFPToUI(value, type) : builder_.CreateFPToSI(value, type);
  Value* too_small = builder_.CreateFCmpOLE(value, bound(static_cast<double>(min_value(to))));
  Value* too_large = builder_.CreateFCmpOGE(value, bound(past));
  Value* least = integer(static_cast<uint64_t>(min_value(to)));
  Value* saturated = choose(too_large, integer(max_value(to)), choose(too_small, least, inside));
  return choose(is_nan(value), integer(0), saturated);
}

// Up to 16 bits f32 is exact, up to 32 bits f64. Beyond that f16 and fp8 overflow long before f64
// rounds; for bf16 the low bits are folded into one as in scalar.cc, so that rounding to f64 and
// rounding again end where one rounding does.
Value* Arithmetic::int_to_float(Value* value, DType from, DType to) {
  llvm::LLVMContext& context = builder_.getContext();
  const bool is_signed_source = is_signed(from) || is_index(from);
  auto convert = [&](Value* integer, DType dtype) {
    llvm::Type* type = value_type(context, dtype, lanes_of(integer));
    return is_signed_source ? builder_.CreateSIToFP(integer, type)
                            : builder_.CreateUIToFP(integer, type);
  };
  if (!is_narrow_float(to)) return convert(value, to);
  if (byte_size(from) <= 2) return narrow(convert(value, DType::F32), to);
  if (byte_size(from) == 8 && to == DType::BF16) {
    constexpr uint64_t kFolded = (uint64_t{1} << 11) - 1;
    Value* low = builder_.CreateAnd(value, int_constant(value, kFolded));
    // In two's complement too this is the odd one of the two neighbours without low bits.
    Value* any = builder_.CreateICmpNE(low, int_constant(value, 0));
    Value* sticky = choose(any, int_constant(value, kFolded + 1), int_constant(value, 0));
    Value* folded =
        builder_.CreateOr(builder_.CreateAnd(value, int_constant(value, ~kFolded)), sticky);
    // Small ones are exact as they are.
    llvm::Type* type = value->getType();
    Value* magnitude = is_signed_source ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs,
                                                                         value, builder_.getFalse())
                                        : value;
    Value* large =
        builder_.CreateICmpUGE(magnitude, llvm::ConstantInt::get(type, uint64_t{1} << 53));
    value = choose(large, folded, value);
  }
  return narrow(round_to_odd(convert(value, DType::F64)), to);
}

Value* Arithmetic::bitcast(Value* value, DType from, DType to) {
  llvm::LLVMContext& context = builder_.getContext();
  const unsigned lanes = lanes_of(value);
  if (is_bool(from)) value = builder_.CreateZExt(value, value_type(context, DType::U8, lanes));
  if (is_bool(to)) return builder_.CreateICmpNE(value, int_constant(value, 0));
  return builder_.CreateBitCast(value, value_type(context, to, lanes));
}

// f64 to the f32 next to it that is odd in its last place, unless it is exact: it lies on the same
// side of every midpoint of a narrower format, so that the rounding that follows is the only one.
Value* Arithmetic::round_to_odd(Value* value) {
  llvm::LLVMContext& context = builder_.getContext();
  const unsigned lanes = lanes_of(value);
  llvm::Type* single = value_type(context, DType::F32, lanes);
  Value* rounded = builder_.CreateFPTrunc(value, single);
  Value* back = builder_.CreateFPExt(rounded, value->getType());
  Value* bits = builder_.CreateBitCast(rounded, value_type(context, DType::U32, lanes));
  Value* too_far = builder_.CreateFCmpOGT(unary(llvm::Intrinsic::fabs, back),
                                          unary(llvm::Intrinsic::fabs, value));
  Value* toward_zero = choose(too_far, builder_.CreateSub(bits, int_constant(bits, 1)), bits);
  Value* odd = builder_.CreateOr(toward_zero, int_constant(bits, 1));
  Value* inexact = builder_.CreateFCmpONE(back, value);  // not so for NaN, which stays
  return builder_.CreateBitCast(choose(inexact, odd, bits), single);
}

Value* Arithmetic::widen(Value* bits, DType from) {
  llvm::LLVMContext& context = builder_.getContext();
  const unsigned lanes = lanes_of(bits);
  llvm::Type* single = value_type(context, DType::F32, lanes);
  if (from == DType::BF16) {
    Value* word = builder_.CreateZExt(bits, value_type(context, DType::U32, lanes));
    return builder_.CreateBitCast(builder_.CreateShl(word, int_constant(word, 16)), single);
  }
  if (!has_half_) return widen_by_parts(bits, from);
  llvm::Type* half = with_lanes_of(bits, llvm::Type::getHalfTy(context));
  auto extend = [&](Value* code) {
    return builder_.CreateFPExt(builder_.CreateBitCast(code, half), single);
  };
  if (from == DType::F16) return extend(bits);
  Value* code = builder_.CreateZExt(bits, value_type(context, DType::U16, lanes));
  // f8e5m2 is the upper half of an f16.
  if (from == DType::F8E5M2) return extend(builder_.CreateShl(code, int_constant(code, 8)));
  // f8e4m3 moved under f16's exponent is an f16 that is 2^8 times too small.
  Value* sign =
      builder_.CreateShl(builder_.CreateAnd(code, int_constant(code, 0x80)), int_constant(code, 8));
  Value* magnitude = builder_.CreateAnd(code, int_constant(code, 0x7f));
  Value* moved = builder_.CreateOr(sign, builder_.CreateShl(magnitude, int_constant(code, 7)));
  Value* value = builder_.CreateFMul(extend(moved), llvm::ConstantFP::get(single, 256.0));
  Value* nan = builder_.CreateICmpEQ(magnitude, int_constant(code, 0x7f));
  return choose(nan, llvm::ConstantFP::getNaN(single), value);
}

// For every format: the normal codes get f32's exponent bias, the subnormal ones are integers
// times a power of two.
Value* Arithmetic::widen_by_parts(Value* bits, DType from) {
  llvm::LLVMContext& context = builder_.getContext();
  const FloatFormat& format = format_of(from);
  const unsigned lanes = lanes_of(bits);
  llvm::Type* single = value_type(context, DType::F32, lanes);
  llvm::Type* word = value_type(context, DType::U32, lanes);
  const auto widening = static_cast<uint64_t>(kSingle.mantissa_bits - format.mantissa_bits);
  const auto rebias = static_cast<uint64_t>(kSingle.bias() - format.bias())
                      << kSingle.mantissa_bits;
  Value* code = builder_.CreateZExt(bits, word);
  Value* magnitude = builder_.CreateAnd(code, int_constant(code, format.sign_code() - 1));
  Value* shifted = builder_.CreateShl(magnitude, int_constant(code, widening));
  Value* normal = builder_.CreateAdd(shifted, int_constant(code, rebias));
  Value* unit =
      llvm::ConstantFP::get(single, power_of_two(format.min_exponent() - format.mantissa_bits));
  Value* small = builder_.CreateBitCast(
      builder_.CreateFMul(builder_.CreateUIToFP(magnitude, single), unit), word);
  Value* is_small = builder_.CreateICmpULT(magnitude, int_constant(code, format.hidden_bit()));
  Value* finite = choose(is_small, small, normal);
  // The top exponent keeps its mantissa; a format without infinity has NaN there.
  Value* top = format.has_infinity
                   ? builder_.CreateOr(shifted, int_constant(code, kSingle.overflow_code()))
                   : int_constant(code, kSingle.overflow_code() + kSingle.hidden_bit() / 2);
  Value* overflown = builder_.CreateICmpUGE(magnitude, int_constant(code, format.overflow_code()));
  Value* result = choose(overflown, top, finite);
  Value* sign = builder_.CreateAnd(code, int_constant(code, format.sign_code()));
  Value* sign_shift = int_constant(code, static_cast<uint64_t>(kSingle.width() - format.width()));
  return builder_.CreateBitCast(builder_.CreateOr(result, builder_.CreateShl(sign, sign_shift)),
                                single);
}

Value* Arithmetic::narrow(Value* value, DType to) {
  if (to == DType::BF16) return narrow_bf16(value);
  if (to != DType::F16 || !has_half_) return narrow_by_parts(value, to);
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Type* half = with_lanes_of(value, llvm::Type::getHalfTy(context));
  return builder_.CreateBitCast(builder_.CreateFPTrunc(value, half),
                                value_type(context, DType::U16, lanes_of(value)));
}

// The upper half, after adding just less than half of its last place, and one more where that place
// is odd. NaNs must not be carried into infinity.
Value* Arithmetic::narrow_bf16(Value* value) {
  llvm::LLVMContext& context = builder_.getContext();
  const unsigned lanes = lanes_of(value);
  Value* bits = builder_.CreateBitCast(value, value_type(context, DType::U32, lanes));
  Value* sixteen = int_constant(bits, 16);
  Value* upper = builder_.CreateLShr(bits, sixteen);
  Value* odd = builder_.CreateAnd(upper, int_constant(bits, 1));
  Value* bias = builder_.CreateAdd(odd, int_constant(bits, 0x7fff));
  Value* rounded = builder_.CreateLShr(builder_.CreateAdd(bits, bias), sixteen);
  Value* nan = builder_.CreateOr(upper, int_constant(bits, 0x40));
  return builder_.CreateTrunc(choose(is_nan(value), nan, rounded),
                              value_type(context, DType::U16, lanes));
}

// Normal results: f32's bits with the other bias, rounded as bf16 above. Subnormal ones: adding the
// power of two whose last place is the format's smallest number lets the float unit round.
Value* Arithmetic::narrow_by_parts(Value* value, DType to) {
  llvm::LLVMContext& context = builder_.getContext();
  const FloatFormat& format = format_of(to);
  const unsigned lanes = lanes_of(value);
  llvm::Type* single = value->getType();
  llvm::Type* word = value_type(context, DType::U32, lanes);
  const int dropped = kSingle.mantissa_bits - format.mantissa_bits;
  const auto shift = static_cast<uint64_t>(dropped);
  const auto rebias = static_cast<uint64_t>(kSingle.bias() - format.bias())
                      << kSingle.mantissa_bits;
  Value* magnitude_value = unary(llvm::Intrinsic::fabs, value);
  Value* magnitude = builder_.CreateBitCast(magnitude_value, word);

  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, int_constant(magnitude, shift)),
                                  int_constant(magnitude, 1));
  const uint64_t below_half = (uint64_t{1} << (dropped - 1)) - 1;
  Value* bias = builder_.CreateAdd(odd, int_constant(magnitude, below_half - rebias));
  Value* normal =
      builder_.CreateLShr(builder_.CreateAdd(magnitude, bias), int_constant(magnitude, shift));

  const double magic =
      power_of_two(format.min_exponent() - format.mantissa_bits + kSingle.mantissa_bits);
  Value* magic_value = llvm::ConstantFP::get(single, magic);
  Value* sum = builder_.CreateBitCast(builder_.CreateFAdd(magnitude_value, magic_value), word);
  Value* small = builder_.CreateSub(sum, builder_.CreateBitCast(magic_value, word));

  const uint64_t least_normal =
      std::bit_cast<uint32_t>(static_cast<float>(power_of_two(format.min_exponent())));
  Value* is_small = builder_.CreateICmpULT(magnitude, int_constant(magnitude, least_normal));
  Value* finite = choose(is_small, small, normal);
  Value* overflow = int_constant(magnitude, format.overflow_code());
  Value* code = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, finite, overflow);
  const uint64_t quiet = format.has_infinity ? format.hidden_bit() >> 1 : 0;
  Value* nan = int_constant(magnitude, format.overflow_code() + quiet);
  code = choose(is_nan(value), nan, code);

  Value* bits = builder_.CreateBitCast(value, word);
  Value* sign = builder_.CreateAnd(
      builder_.CreateLShr(
          bits, int_constant(bits, static_cast<uint64_t>(kSingle.width() - format.width()))),
      int_constant(bits, format.sign_code()));
  return builder_.CreateTrunc(builder_.CreateOr(code, sign), value_type(context, to, lanes));
}

}  // namespace anneal
