// Elementwise ops as LLVM instructions. What each gives for every value is semantics.cc's and
// scalar.cc's to say; nothing here may round twice, and no flag may loosen float arithmetic.
#include "codegen/llvm/arithmetic.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <anneal/error.h>

namespace anneal {
namespace {

using llvm::Value;

bool is_comparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Eq; }

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

}  // namespace

unsigned lanes_of(Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? vector->getNumElements() : 1;
}

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
    case Op::Mod:
      if (is_float(from)) break;
      return divide(op, from, operands[0], operands[1]);
    default: break;
  }
  if (is_comparison(op)) {
    Value* result = compare(op, from, a, b);
    // LLVM repeats a comparison in every block that uses it, also inside of loops that it was moved
    // out of; a frozen one it keeps. Masks of positions are worth a register.
    const bool keep =
        is_index(from) && a->getType()->isVectorTy() && llvm::isa<llvm::Instruction>(result);
    return keep ? builder_.CreateFreeze(result) : result;
  }
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
    case Op::FloorDiv: return float_quotient(a, b);
    case Op::Mod: return float_remainder(a, b);
    case Op::Scale: return scales_ ? scale_by_instruction(a, b) : scale(a, b);
    default: break;
  }
  if (is_libm_function(op)) return library_call(info(op).libm, a, b);
  throw InternalError(fmt::format("{} of floats has no code", name(op)));
}

// b where it is greater or NaN, else a: the first of equal ones, and a where that is NaN. The inner
// choice is one instruction of x86, and the outer one vanishes where b is a constant.
Value* Arithmetic::extreme(Op op, Value* a, Value* b) {
  Value* beyond = op == Op::Max ? builder_.CreateFCmpOGT(b, a) : builder_.CreateFCmpOLT(b, a);
  return choose(is_nan(b), b, choose(beyond, b, a));
}

// Sixteen lanes at a time, of which some may be nobody's.
Value* Arithmetic::scale_by_instruction(Value* a, Value* b) {
  constexpr unsigned kLanes = 16, kRoundAsSet = 4;
  const unsigned lanes = lanes_of(a);
  llvm::Type* type = a->getType();
  llvm::Type* whole = llvm::FixedVectorType::get(type->getScalarType(), kLanes);
  auto resized = [&](Value* vector, unsigned from, unsigned count, unsigned size) {
    std::vector<int> order(size, llvm::PoisonMaskElem);
    for (unsigned i = 0; i < count; ++i) order[i] = static_cast<int>(from + i);
    return builder_.CreateShuffleVector(vector, order);
  };
  auto sixteen = [&](Value* vector, unsigned from) -> Value* {
    if (lanes == kLanes) return vector;
    if (lanes == 1)
      return builder_.CreateInsertElement(llvm::PoisonValue::get(whole), vector, uint64_t{0});
    return resized(vector, from, std::min(lanes - from, kLanes), kLanes);
  };
  std::vector<Value*> parts;
  for (unsigned from = 0; from < lanes; from += kLanes) {
    Value* part = sixteen(a, from);
    parts.push_back(builder_.CreateIntrinsic(
        whole, llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
        {part, sixteen(b, from), part, builder_.getInt16(0xffff), builder_.getInt32(kRoundAsSet)}));
  }
  if (lanes == kLanes) return parts[0];
  if (lanes == 1) return builder_.CreateExtractElement(parts[0], uint64_t{0});
  if (lanes < kLanes) return resized(parts[0], 0, lanes, lanes);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < lanes; ++lane)
    result = builder_.CreateInsertElement(
        result, builder_.CreateExtractElement(parts[lane / kLanes], uint64_t{lane % kLanes}),
        uint64_t{lane});
  return result;
}

// The product in f64 is exact, so that only the way back rounds.
Value* Arithmetic::scale(Value* a, Value* b) {
  llvm::LLVMContext& context = builder_.getContext();
  const unsigned lanes = lanes_of(a);
  llvm::Type* wide = value_type(context, DType::F64, lanes);
  llvm::Type* word = value_type(context, DType::I64, lanes);
  auto number = [&](double value) { return llvm::ConstantFP::get(wide, value); };
  constexpr double kFar = 400, kInfinity = std::numeric_limits<double>::infinity();
  Value* exponent = unary(llvm::Intrinsic::floor, builder_.CreateFPExt(b, wide));
  // NaN goes to a bound here, and comes back below.
  Value* low = choose(builder_.CreateFCmpULT(exponent, number(-kFar)), number(-kFar), exponent);
  Value* bounded = choose(builder_.CreateFCmpUGT(low, number(kFar)), number(kFar), low);
  Value* biased =
      builder_.CreateAdd(builder_.CreateFPToSI(bounded, word), llvm::ConstantInt::get(word, 1023));
  Value* power =
      builder_.CreateBitCast(builder_.CreateShl(biased, llvm::ConstantInt::get(word, 52)), wide);
  power = choose(builder_.CreateFCmpOEQ(exponent, number(kInfinity)), number(kInfinity), power);
  power = choose(builder_.CreateFCmpOEQ(exponent, number(-kInfinity)), number(0), power);
  power = choose(is_nan(exponent), exponent, power);
  Value* infinite =
      builder_.CreateFCmpOEQ(unary(llvm::Intrinsic::fabs, exponent), number(kInfinity));
  Value* factor = builder_.CreateFPExt(a, wide);
  factor = choose(builder_.CreateAnd(is_nan(factor), infinite), number(1), factor);
  return builder_.CreateFPTrunc(builder_.CreateFMul(factor, power), a->getType());
}

// ---- remainders of floats

// Below 2^24 (f64: 2^53) the quotient rounds to its whole part or, just below a whole number, to
// that: one more than it should be. Every multiple of b that is near a leaves a rest that b's own
// digits hold, so the fused product is exact, and so is the step back.
Value* Arithmetic::near_remainder(Value* a, Value* b, Value* quotient) {
  Value* rest = builder_.CreateIntrinsic(a->getType(), llvm::Intrinsic::fma,
                                         {builder_.CreateFNeg(quotient), b, a});
  Value* zero = llvm::ConstantFP::get(a->getType(), 0);
  rest = choose(builder_.CreateFCmpOLT(rest, zero), builder_.CreateFAdd(rest, b), rest);
  return choose(builder_.CreateFCmpOLT(a, b), a, rest);  // also of an infinite b
}

// C's fmod. The library's takes a loop for every lane; it is called where a lane's quotient is
// large, infinite or NaN.
Value* Arithmetic::truncated_remainder(Value* a, Value* b) {
  llvm::Type* type = a->getType();
  const double exact_below = type->getScalarType()->isFloatTy() ? 0x1p24 : 0x1p53;
  Value *x = unary(llvm::Intrinsic::fabs, a), *y = unary(llvm::Intrinsic::fabs, b);
  Value* quotient = unary(llvm::Intrinsic::trunc, builder_.CreateFDiv(x, y));
  Value* near = builder_.CreateFCmpOLT(quotient, llvm::ConstantFP::get(type, exact_below));
  if (type->isVectorTy()) near = builder_.CreateAndReduce(near);
  Value* result =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, near_remainder(x, y, quotient), a);

  llvm::BasicBlock* before = builder_.GetInsertBlock();
  auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(builder_.getContext(), name, before->getParent());
  };
  llvm::BasicBlock *far = block("far"), *after = block("after");
  after->moveAfter(before);
  builder_.CreateCondBr(near, after, far);
  builder_.SetInsertPoint(far);
  Value* called = library_call("fmod", a, b);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  llvm::PHINode* either = builder_.CreatePHI(type, 2);
  either->addIncoming(result, before);
  either->addIncoming(called, far);
  return either;
}

// Whether the rest is there and has the other sign than the divisor.
Value* Arithmetic::has_other_sign(Value* rest, Value* b) {
  Value* zero = llvm::ConstantFP::get(rest->getType(), 0);
  Value* differ =
      builder_.CreateXor(builder_.CreateFCmpOLT(rest, zero), builder_.CreateFCmpOLT(b, zero));
  return builder_.CreateAnd(builder_.CreateFCmpUNE(rest, zero), differ);
}

Value* Arithmetic::float_remainder(Value* a, Value* b) {
  Value* rest = truncated_remainder(a, b);
  Value* zero = llvm::ConstantFP::get(rest->getType(), 0);
  Value* moved = choose(has_other_sign(rest, b), builder_.CreateFAdd(rest, b), rest);
  return choose(builder_.CreateFCmpOEQ(rest, zero),
                builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, b), moved);
}

// In f64, where quotients of f32 have room.
Value* Arithmetic::float_quotient(Value* a, Value* b) {
  llvm::Type* type = a->getType();
  llvm::Type* wide = with_lanes_of(a, llvm::Type::getDoubleTy(builder_.getContext()));
  Value *x = builder_.CreateFPExt(a, wide), *y = builder_.CreateFPExt(b, wide);
  Value *zero = llvm::ConstantFP::get(wide, 0), *one = llvm::ConstantFP::get(wide, 1);
  Value* rest = truncated_remainder(x, y);
  Value* quotient = builder_.CreateFDiv(builder_.CreateFSub(x, rest), y);
  quotient = choose(has_other_sign(rest, y), builder_.CreateFSub(quotient, one), quotient);
  Value* ratio = builder_.CreateFDiv(x, y);
  Value* whole = choose(builder_.CreateFCmpOEQ(quotient, zero),
                        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, ratio),
                        unary(llvm::Intrinsic::nearbyint, quotient));
  return builder_.CreateFPTrunc(choose(builder_.CreateFCmpOEQ(y, zero), ratio, whole), type);
}

Value* Arithmetic::library_call(std::string_view name, Value* a, Value* b) {
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

}  // namespace anneal
