// The meaning of elementwise ops (ir/semantics.h, cast() in ir/scalar.h) as WGSL expressions.
// Knows nothing of loops, memory or Programs.
#pragma once

#include <set>
#include <span>
#include <string>

#include "ir/dtype.h"
#include "ir/op.h"

namespace anneal::wgsl {

// How a value is held: bool, i32, u32 and f32 as they are; narrower integers in 32 bits, their sign
// extended; f16, bf16 and fp8 as the bits of their codes; 64-bit integers as two words, the lower
// first.
enum class Held : uint8_t { Bool, Signed, Unsigned, Float, Words };

struct Operand {
  std::string text;
  DType dtype;
};

class Arithmetic {
 public:
  // An index is an i32, or two words where positions need them.
  explicit Arithmetic(bool wide_index) : wide_index_(wide_index) {}

  Held held(DType dtype) const;
  const char* type(DType dtype) const;
  std::string constant(DType dtype, uint64_t bits);
  std::string compute(Op op, DType dtype, std::span<const Operand> operands);
  // FloorDiv or Mod of indices that are not negative.
  std::string divide_unsigned(Op op, const std::string& index, const std::string& by);
  std::string cast(const Operand& from, DType to);

  std::string call(const char* function, std::initializer_list<std::string_view> arguments);
  // The functions that were called, each after those it needs.
  std::string library() const;

 private:
  bool is_signed_order(DType dtype) const { return is_signed(dtype) || is_index(dtype); }
  std::string compare(Op op, const Operand& a, const Operand& b);
  std::string integer(Op op, DType dtype, std::span<const Operand> operands);
  std::string of_words(Op op, DType dtype, std::span<const Operand> operands);
  std::string of_floats(Op op, std::span<const Operand> operands);
  // A 32-bit value as the narrower integer it stands for.
  std::string wrapped(DType dtype, const std::string& text);
  std::string bitcast(const Operand& from, DType to);
  std::string to_float(const Operand& from);
  std::string to_words(const Operand& from);
  std::string float_to_integer(const std::string& text, DType to);

  bool wide_index_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace anneal::wgsl
