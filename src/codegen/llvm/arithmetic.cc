// Elementwise ops as LLVM instructions. What each gives for every value is semantics.cc's and
// scalar.cc's to say; nothing here may round twice, and no flag may loosen float arithmetic.
#include "codegen/llvm/arithmetic.h"

#include <bit>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <anneal/error.h>

#include "ir/float_formats.h"

namespace anneal {
namespace {

using llvm::Value;

bool is_narrow(DType dtype) {
  return is_float(dtype) && dtype != DType::F32 && dtype != DType::F64;
}

bool is_comparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Eq; }

unsigned lanes_of(Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? vector->getNumElements() : 1;
}

llvm::Type* element_type(llvm::LLVMContext& context, DType dtype) {
  if (dtype == DType::F32) return llvm::Type::getFloatTy(context);
  if (dtype == DType::F64) return llvm::Type::getDoubleTy(context);
  if (dtype == DType::Bool) return llvm::Type::getInt1Ty(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(8 * byte_size(dtype)));
}

// The one value of every lane, where it is a constant integer.
const llvm::APInt* constant_of(Value* value) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (!constant) return nullptr;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return integer ? &integer->getValue() : nullptr;
}

const char* library_name(Op op) {
  switch (op) {
    case Op::Exp: return "exp";
    case Op::Exp2: return "exp2";
    case Op::Log: return "log";
    case Op::Log2: return "log2";
    case Op::Sin: return "sin";
    case Op::Cos: return "cos";
    case Op::Tanh: return "tanh";
    case Op::Erf: return "erf";
    case Op::Pow: return "pow";
    default: return nullptr;
  }
}

constexpr FloatFormat kSingle = format_of(DType::F32);

// The f32 2^exponent as a double, for ConstantFP.
double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

}  // namespace

llvm::Type* value_type(llvm::LLVMContext& context, DType dtype, unsigned lanes) {
  llvm::Type* element = element_type(context, dtype);
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

llvm::Type* Arithmetic::with_lanes_of(Value* like, llvm::Type* element) {
  const unsigned lanes = lanes_of(like);
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

Value* Arithmetic::int_constant(Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}

Value* Arithmetic::choose(Value* condition, Value* a, Value* b) {
  if (auto* known = llvm::dyn_cast<llvm::Constant>(condition)) {
    if (known->isAllOnesValue()) return a;
    if (known->isNullValue()) return b;
  }
  return builder_.CreateSelect(condition, a, b);
}

Value* Arithmetic::compute(Op op, DType dtype, std::span<const Operand> operands) {
  Value* a = operands[0].value;
  Value* b = operands.size() > 1 ? operands[1].value : nullptr;
  const DType from = operands[0].dtype;
  switch (op) {
    case Op::Where: return choose(a, b, operands[2].value);
    case Op::Threefry: return threefry(operands);
    case Op::MulAdd:
      return builder_.CreateIntrinsic(a->getType(), llvm::Intrinsic::fma,
                                      {a, b, operands[2].value});
    case Op::Cast:
    case Op::AsIndex: return cast(a, from, dtype);
    case Op::Bitcast: return bitcast(a, from, dtype);
    case Op::FloorDiv:
    case Op::Mod: return divide(op, from, operands[0], operands[1]);
    default: break;
  }
  if (is_comparison(op)) return compare(op, from, a, b);
  return is_float(from) ? float_op(op, a, b) : int_op(op, from, a, b);
}

Value* Arithmetic::compare(Op op, DType dtype, Value* a, Value* b) {
  using Predicate = llvm::CmpInst::Predicate;
  if (is_float(dtype)) {
    const Predicate predicate = op == Op::Lt   ? Predicate::FCMP_OLT
                                : op == Op::Le ? Predicate::FCMP_OLE
                                               : Predicate::FCMP_OEQ;
    return builder_.CreateFCmp(predicate, a, b);
  }
  if (op == Op::Eq) return builder_.CreateICmpEQ(a, b);
  const bool signed_order = is_signed(dtype) || is_index(dtype);
  if (signed_order)
    return op == Op::Lt ? builder_.CreateICmpSLT(a, b) : builder_.CreateICmpSLE(a, b);
  return op == Op::Lt ? builder_.CreateICmpULT(a, b) : builder_.CreateICmpULE(a, b);
}

// ---- floats

Value* Arithmetic::float_op(Op op, Value* a, Value* b) {
  switch (op) {
    case Op::Neg: return builder_.CreateFNeg(a);
    case Op::Abs: return unary(llvm::Intrinsic::fabs, a);
    case Op::Sqrt: return unary(llvm::Intrinsic::sqrt, a);
    case Op::Floor: return unary(llvm::Intrinsic::floor, a);
    case Op::Ceil: return unary(llvm::Intrinsic::ceil, a);
    case Op::Trunc: return unary(llvm::Intrinsic::trunc, a);
    case Op::Round: return unary(llvm::Intrinsic::nearbyint, a);
    case Op::Add: return builder_.CreateFAdd(a, b);
    case Op::Mul: return builder_.CreateFMul(a, b);
    case Op::Div: return builder_.CreateFDiv(a, b);
    case Op::Max:
    case Op::Min: return extreme(op, a, b);
    default: break;
  }
  if (const char* function = library_name(op)) return library_call(function, a, b);
  throw InternalError(fmt::format("{} of floats has no code", name(op)));
}

// b where it is greater or NaN, else a: the first of equal ones, and a where that is NaN. The inner
// choice is one instruction of x86, and the outer one vanishes where b is a constant.
Value* Arithmetic::extreme(Op op, Value* a, Value* b) {
  Value* beyond = op == Op::Max ? builder_.CreateFCmpOGT(b, a) : builder_.CreateFCmpOLT(b, a);
  return choose(is_nan(b), b, choose(beyond, b, a));
}

Value* Arithmetic::library_call(const char* name, Value* a, Value* b) {
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Module* module = builder_.GetInsertBlock()->getModule();
  llvm::Type* wide = llvm::Type::getDoubleTy(context);
  llvm::Type* type = a->getType();
  std::vector<llvm::Type*> parameters(b ? 2 : 1, wide);
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(name, llvm::FunctionType::get(wide, parameters, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  auto call_one = [&](Value* x, Value* y) -> Value* {
    std::vector<Value*> arguments{builder_.CreateFPExt(x, wide)};
    if (y) arguments.push_back(builder_.CreateFPExt(y, wide));
    return builder_.CreateFPTrunc(builder_.CreateCall(callee, arguments), type->getScalarType());
  };
  if (!type->isVectorTy()) return call_one(a, b);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < lanes_of(a); ++lane) {
    Value* y = b ? builder_.CreateExtractElement(b, lane) : nullptr;
    Value* value = call_one(builder_.CreateExtractElement(a, lane), y);
    result = builder_.CreateInsertElement(result, value, lane);
  }
  return result;
}

// ---- integers

Value* Arithmetic::int_op(Op op, DType dtype, Value* a, Value* b) {
  const bool signed_order = is_signed(dtype) || is_index(dtype);
  switch (op) {
    case Op::Neg: return builder_.CreateNeg(a);
    case Op::Abs:
      if (!signed_order) return a;
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse());
    case Op::Add: return builder_.CreateAdd(a, b);
    case Op::Mul: return builder_.CreateMul(a, b);
    case Op::Max:
      return builder_.CreateBinaryIntrinsic(
          signed_order ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case Op::Min:
      return builder_.CreateBinaryIntrinsic(
          signed_order ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case Op::And: return builder_.CreateAnd(a, b);
    case Op::Or: return builder_.CreateOr(a, b);
    case Op::Xor: return builder_.CreateXor(a, b);
    case Op::Shl: {
      // Beyond the width LLVM's shift is undefined, but nobody looks at it there.
      Value* fits = builder_.CreateICmpULT(b, int_constant(b, 8 * byte_size(dtype)));
      return choose(fits, builder_.CreateShl(a, b), int_constant(a, 0));
    }
    case Op::Shr: return shift_right(dtype, a, b);
    default: throw InternalError(fmt::format("{} of {} has no code", name(op), name(dtype)));
  }
}

Value* Arithmetic::shift_right(DType dtype, Value* a, Value* b) {
  const uint64_t width = 8 * byte_size(dtype);
  Value* zero = int_constant(a, 0);
  if (is_unsigned(dtype)) {
    Value* fits = builder_.CreateICmpULT(b, int_constant(b, width));
    return choose(fits, builder_.CreateLShr(a, b), zero);
  }
  Value* count =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, int_constant(b, width - 1));
  Value* negative = builder_.CreateICmpSLT(b, int_constant(b, 0));
  return choose(negative, zero, builder_.CreateAShr(a, count));
}

Value* Arithmetic::divide(Op op, DType dtype, const Operand& a, const Operand& b) {
  const bool quotient = op == Op::FloorDiv;
  const llvm::APInt* divisor = constant_of(b.value);
  Value* zero = int_constant(a.value, 0);
  const bool signed_order = is_signed(dtype) || is_index(dtype);
  if (divisor && divisor->isZero()) return zero;
  // The sign bit alone is a power of two to LLVM, but not where it is a sign.
  if (divisor && divisor->isPowerOf2() && !(signed_order && divisor->isNegative())) {
    Value* shift = int_constant(a.value, divisor->logBase2());
    if (!quotient)
      return builder_.CreateAnd(a.value, int_constant(a.value, divisor->getZExtValue() - 1));
    return signed_order ? builder_.CreateAShr(a.value, shift) : builder_.CreateLShr(a.value, shift);
  }
  if (divisor && is_index(dtype) && fast_index_lanes_ && a.value->getType()->isVectorTy() &&
      divisor->isStrictlyPositive() && divisor->isIntN(31)) {
    return divide_lanes(op, a.value, divisor->getZExtValue());
  }
  const bool positive_divisor = divisor && divisor->isStrictlyPositive();
  if (signed_order && !(a.never_negative && (positive_divisor || b.never_negative))) {
    return divide_signed(op, a.value, b.value);
  }
  Value* by_zero = builder_.CreateICmpEQ(b.value, zero);
  Value* safe = choose(by_zero, int_constant(b.value, 1), b.value);
  Value* result =
      quotient ? builder_.CreateUDiv(a.value, safe) : builder_.CreateURem(a.value, safe);
  return choose(by_zero, zero, result);
}

// Truncated division, then a step down where the remainder has the other sign than the divisor.
// Divisors 0 and -1 are kept from the machine's division, which traps on them.
Value* Arithmetic::divide_signed(Op op, Value* a, Value* b) {
  Value* zero = int_constant(a, 0);
  Value* one = int_constant(a, 1);
  Value* by_zero = builder_.CreateICmpEQ(b, zero);
  Value* by_minus_one = builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  Value* safe = choose(builder_.CreateOr(by_zero, by_minus_one), one, b);
  Value* quotient = builder_.CreateSDiv(a, safe);
  Value* remainder = builder_.CreateSub(a, builder_.CreateMul(quotient, safe));
  Value* other_sign = builder_.CreateICmpSLT(builder_.CreateXor(remainder, safe), zero);
  Value* step = builder_.CreateAnd(builder_.CreateICmpNE(remainder, zero), other_sign);
  if (op == Op::Mod) {
    Value* stepped = choose(step, builder_.CreateAdd(remainder, safe), remainder);
    return choose(by_zero, zero, stepped);
  }
  Value* stepped = choose(step, builder_.CreateSub(quotient, one), quotient);
  Value* negated = choose(by_minus_one, builder_.CreateNeg(a), stepped);
  return choose(by_zero, zero, negated);
}

// No machine divides 64-bit lanes or has the upper half of their product. The product with 1 / d in
// f64 is off by up to 3 * 2^-53 of itself, so that what is left of a is below 2^12 + d; the same
// again is off by one at most, which the signs of the rest show. Exact for every a, floor included.
Value* Arithmetic::divide_lanes(Op op, Value* a, uint64_t divisor) {
  llvm::Type* wide = value_type(builder_.getContext(), DType::F64, lanes_of(a));
  Value* inverse = llvm::ConstantFP::get(wide, 1.0 / static_cast<double>(divisor));
  Value* by = int_constant(a, divisor);
  Value *quotient = int_constant(a, 0), *rest = a;
  for (int step = 0; step < 2; ++step) {
    Value* estimate = builder_.CreateFMul(builder_.CreateSIToFP(rest, wide), inverse);
    Value* part = builder_.CreateFPToSI(estimate, a->getType());
    quotient = step == 0 ? part : builder_.CreateAdd(quotient, part);
    rest = builder_.CreateSub(rest, builder_.CreateMul(part, by));
  }
  Value* below = builder_.CreateICmpSLT(rest, int_constant(a, 0));
  Value* above = builder_.CreateICmpSGE(rest, by);
  if (op == Op::Mod) {
    Value* lowered = choose(above, builder_.CreateSub(rest, by), rest);
    return choose(below, builder_.CreateAdd(rest, by), lowered);
  }
  Value* raised = choose(above, builder_.CreateAdd(quotient, int_constant(a, 1)), quotient);
  return choose(below, builder_.CreateSub(quotient, int_constant(a, 1)), raised);
}

// As in semantics.cc, lane by lane.
Value* Arithmetic::threefry(std::span<const Operand> operands) {
  constexpr uint64_t kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  constexpr uint64_t kParity = 0x1BD11BDA;
  Value* keys[3] = {operands[2].value, operands[3].value, nullptr};
  keys[2] =
      builder_.CreateXor(builder_.CreateXor(keys[0], keys[1]), int_constant(keys[0], kParity));
  Value* x = builder_.CreateAdd(operands[0].value, keys[0]);
  Value* y = builder_.CreateAdd(operands[1].value, keys[1]);
  for (unsigned round = 0; round < 20; ++round) {
    x = builder_.CreateAdd(x, y);
    Value* count = int_constant(y, kRotations[round % 8]);
    Value* rotated = builder_.CreateIntrinsic(y->getType(), llvm::Intrinsic::fshl, {y, y, count});
    y = builder_.CreateXor(rotated, x);
    if (round % 4 != 3) continue;
    const unsigned injection = round / 4 + 1;
    x = builder_.CreateAdd(x, keys[injection % 3]);
    y = builder_.CreateAdd(
        y, builder_.CreateAdd(keys[(injection + 1) % 3], int_constant(y, injection)));
  }
  return x;
}

// ---- between dtypes

Value* Arithmetic::cast(Value* value, DType from, DType to) {
  if (from == to) return value;
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Type* type = value_type(context, to, lanes_of(value));
  if (is_float(from)) {
    if (is_narrow(from)) return cast(widen(value, from), DType::F32, to);
    if (is_bool(to)) {
      return builder_.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0));
    }
    if (is_narrow(to)) return narrow(from == DType::F64 ? round_to_odd(value) : value, to);
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
  const double past = 2 * static_cast<double>(max_value(to) / 2 + 1);
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
  if (!is_narrow(to)) return convert(value, to);
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
