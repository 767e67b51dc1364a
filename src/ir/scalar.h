// A constant of any dtype in 8 bytes and a tag, and the meaning of the Cast op on it.
// Must not do arithmetic: the ops' meaning lives in the interpreter.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/dtype.h"

namespace anneal {

// Equal values have equal bits, so a Scalar can key a table: floats hold the bits of the double
// that equals the value already rounded to the dtype, with one quiet NaN and both zeros; integers
// hold int64 (u64 the same 64 bits); bool holds 0 or 1. The constructors keep this.
struct Scalar {
  constexpr Scalar() = default;  // false

  // `value` cast to `dtype`: of(dtype, v) is the cast of an f64 and of_int(dtype, v) of an i64.
  static Scalar of(DType dtype, double value);
  static Scalar of_int(DType dtype, int64_t value);

  // The inverse of bits().
  static Scalar from_bits(DType dtype, uint64_t bits) {
    assert(is_canonical(dtype, bits));
    return {dtype, bits};
  }

  constexpr DType dtype() const { return dtype_; }
  // The value cast to f64 and to i64, so a u64 of 2^63 or more keeps its bits in as_int().
  double as_double() const;
  int64_t as_int() const;
  constexpr uint64_t bits() const { return bits_; }

  // By dtype and bits: NaN equals NaN, -0.0 differs from 0.0, i32 1 differs from i64 1.
  friend constexpr bool operator==(const Scalar&, const Scalar&) = default;

 private:
  constexpr Scalar(DType dtype, uint64_t bits) : bits_(bits), dtype_(dtype) {}

  static bool is_canonical(DType dtype, uint64_t bits);

  uint64_t bits_ = 0;
  DType dtype_ = DType::Bool;
};
static_assert(std::is_trivially_copyable_v<Scalar> && sizeof(Scalar) == 16);

// The definition of the Cast op; every backend must agree with it.
//   float -> float  rounds once to nearest, ties to even
//   int   -> float  rounds once to nearest, ties to even
//   float -> int    truncates toward zero, saturates at the ends of the target, NaN gives 0
//   int   -> int    wraps modulo two to the width
//   any   -> bool   x != 0, so NaN gives true and -0.0 false
//   bool  -> any    0 or 1
//   any   -> index  the integer, truncated toward zero; std::overflow_error where none is in range
// Index counts as i64 where it is the source.
Scalar cast(Scalar value, DType to);

// Whether cast() answers: false only for NaN and for values beyond int64 on the way to index.
bool can_cast(Scalar value, DType to);

// The least and greatest value of a dtype in its order, the units of max and min. Infinite for
// floats that have infinities; f8e4m3 answers -448 and 448.
Scalar lowest(DType dtype);
Scalar highest(DType dtype);

// Integers in decimal, true and false; floats as the shortest decimal that reads back, always with
// '.' or 'e', else "nan", "inf", "-inf". F64 is shortest among doubles, every narrower float among
// f32 values: a text short enough to single out an fp8 would read 450.0 for 448.
std::string to_text(Scalar value);

// The inverse of to_text. Nothing for text of another form, integers outside the dtype, finite
// decimals that would round to infinity or NaN. F32 and F64 round the decimal once; a narrower
// float rounds the f64 nearest to it.
std::optional<Scalar> parse_scalar(DType dtype, std::string_view text);

}  // namespace anneal
