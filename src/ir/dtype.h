// Element types: names, sizes, classes, limits and the promotion order. The rows are dtypes.def.
// Must not hold values or arithmetic (scalar.h) nor float encodings (float_formats.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <anneal/dtype.h>

namespace anneal {

enum class DTypeKind : uint8_t { Bool, Signed, Unsigned, Float, Index };

// Every dtype in enum order.
inline constexpr std::array kAllDTypes{
#define DTYPE(name, text, bytes, kind) DType::name,
#include "ir/dtypes.def"
};
inline constexpr size_t kDTypeCount = kAllDTypes.size();

// The rows stand in the order of the public enum and leave none out.
static_assert([] {
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (static_cast<size_t>(kAllDTypes[i]) != i) return false;
  return static_cast<size_t>(DType::Index) + 1 == kDTypeCount;
}());

struct DTypeRow {
  std::string_view text;
  size_t bytes;
  DTypeKind kind;
};

inline constexpr std::array<DTypeRow, kDTypeCount> kDTypeRows{{
#define DTYPE(name, text, bytes, kind) {text, bytes, DTypeKind::kind},
#include "ir/dtypes.def"
}};

constexpr const DTypeRow& dtype_row(DType dtype) { return kDTypeRows[static_cast<size_t>(dtype)]; }

constexpr std::string_view name(DType dtype) { return dtype_row(dtype).text; }
constexpr size_t byte_size(DType dtype) { return dtype_row(dtype).bytes; }
constexpr DTypeKind kind(DType dtype) { return dtype_row(dtype).kind; }

// The inverse of name().
std::optional<DType> parse_dtype(std::string_view text);

constexpr bool is_bool(DType dtype) { return kind(dtype) == DTypeKind::Bool; }
constexpr bool is_index(DType dtype) { return kind(dtype) == DTypeKind::Index; }
constexpr bool is_float(DType dtype) { return kind(dtype) == DTypeKind::Float; }
// f16, bf16 and fp8: devices store them and compute in f32.
constexpr bool is_narrow_float(DType dtype) {
  return is_float(dtype) && dtype != DType::F32 && dtype != DType::F64;
}
// Of integers that a buffer can hold: bool, index and the floats are neither signed nor unsigned.
constexpr bool is_signed(DType dtype) { return kind(dtype) == DTypeKind::Signed; }
constexpr bool is_unsigned(DType dtype) { return kind(dtype) == DTypeKind::Unsigned; }
constexpr bool is_int(DType dtype) { return is_signed(dtype) || is_unsigned(dtype); }

// The dtype in which values of `a` and `b` meet: their least upper bound in the order of
// dtypes.def. Commutative and idempotent, with bool as unit and f64 as top. One pair has no least
// upper bound: f8e4m3 and f8e5m2 lie below both f16 and bf16, and give f32, where those two meet.
// Hence the only triples that do not associate are {f8e4m3, f8e5m2, f16} and {f8e4m3, f8e5m2,
// bf16}; use promote_all for three operands or more.
DType promote(DType a, DType b);

// The same for a set of dtypes, in any order and with any repetition; bool when it is empty.
// Equals folding promote() except on the triples above, where it sees that f16 (bf16) is enough.
DType promote_all(std::span<const DType> dtypes);

// The least and greatest value of a bool, integer or index; max_value(U64) needs all 64 bits.
int64_t min_value(DType dtype);
uint64_t max_value(DType dtype);

// The greatest finite value of a float, and its negation.
double largest_finite(DType dtype);
double lowest_finite(DType dtype);

}  // namespace anneal
