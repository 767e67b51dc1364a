// The meaning of elementwise ops (ir/semantics.h, cast() in ir/scalar.h) as LLVM instructions.
// Must not know of loops, memory or Programs. Only for the files beside it: it needs LLVM.
#pragma once

#include <span>

#include <llvm/IR/IRBuilder.h>

#include "ir/dtype.h"
#include "ir/op.h"

namespace anneal {

// Folds constants only: whatever looks through phis would take those of open loops for constants.
using Builder = llvm::IRBuilder<>;

// bool is i1 and index i64; f16, bf16 and fp8 are the integers of their bits.
llvm::Type* value_type(llvm::LLVMContext& context, DType dtype, unsigned lanes);
unsigned lanes_of(llvm::Value* value);

class Arithmetic {
 public:
  // What the target does by itself: conversions of f16, and of 64-bit integers in lanes; AVX-512's
  // vscalefps.
  struct Abilities {
    bool converts_half = false;
    bool converts_wide_lanes = false;
    bool scales = false;
  };
  Arithmetic(Builder& builder, Abilities abilities)
      : builder_(builder),
        has_half_(abilities.converts_half),
        fast_index_lanes_(abilities.converts_wide_lanes),
        scales_(abilities.scales) {}

  struct Operand {
    llvm::Value* value;
    DType dtype;
    bool never_negative = false;  // known of an index: divisions get cheaper
  };
  llvm::Value* compute(Op op, DType dtype, std::span<const Operand> operands);
  llvm::Value* cast(llvm::Value* value, DType from, DType to);

 private:
  llvm::Value* float_op(Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* int_op(Op op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(Op op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* extreme(Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* scale(llvm::Value* a, llvm::Value* b);
  llvm::Value* scale_by_instruction(llvm::Value* a, llvm::Value* b);
  llvm::Value* near_remainder(llvm::Value* a, llvm::Value* b, llvm::Value* quotient);
  llvm::Value* truncated_remainder(llvm::Value* a, llvm::Value* b);
  llvm::Value* has_other_sign(llvm::Value* rest, llvm::Value* b);
  llvm::Value* float_remainder(llvm::Value* a, llvm::Value* b);
  llvm::Value* float_quotient(llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(Op op, DType dtype, const Operand& a, const Operand& b);
  llvm::Value* divide_signed(Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide_lanes(Op op, llvm::Value* a, uint64_t divisor);
  llvm::Value* shift_right(DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* threefry(std::span<const Operand> operands);
  llvm::Value* bitcast(llvm::Value* value, DType from, DType to);
  // For every lane a call of C's function for double.
  llvm::Value* library_call(std::string_view name, llvm::Value* a, llvm::Value* b);

  // Between f32 and formats narrower than it, which are integers of their bits.
  llvm::Value* widen(llvm::Value* bits, DType from);
  llvm::Value* narrow(llvm::Value* value, DType to);
  llvm::Value* widen_by_parts(llvm::Value* bits, DType from);
  llvm::Value* narrow_by_parts(llvm::Value* value, DType to);
  llvm::Value* narrow_bf16(llvm::Value* value);
  llvm::Value* round_to_odd(llvm::Value* value);
  llvm::Value* float_to_int(llvm::Value* value, DType to);
  llvm::Value* int_to_float(llvm::Value* value, DType from, DType to);

  llvm::Value* choose(llvm::Value* condition, llvm::Value* a, llvm::Value* b);
  llvm::Value* is_nan(llvm::Value* value) { return builder_.CreateFCmpUNO(value, value); }
  llvm::Value* int_constant(llvm::Value* like, uint64_t bits);
  llvm::Type* with_lanes_of(llvm::Value* like, llvm::Type* element);
  llvm::Value* unary(llvm::Intrinsic::ID intrinsic, llvm::Value* value) {
    return builder_.CreateUnaryIntrinsic(intrinsic, value);
  }

  Builder& builder_;
  bool has_half_, fast_index_lanes_, scales_;
};

}  // namespace anneal
