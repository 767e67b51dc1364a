// What each elementwise op gives for every value of every dtype it accepts, one line an op.
// Must not know of tensors: shapes, loops and memory are interpreter.cc's.
#include "ir/semantics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/call_site.h"
#include "base/checked.h"
#include "ir/float_formats.h"

namespace anneal {
namespace {

[[noreturn]] void reject(Op op, DType dtype) {
  throw InternalError(fmt::format("{} of {} has no meaning", name(op), name(dtype)));
}

bool is_comparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Eq; }

// For double, int64_t and uint64_t: the order of floats, of signed and of unsigned integers.
template <typename T>
bool compare(Op op, T a, T b) {
  if (op == Op::Lt) return a < b;
  return op == Op::Le ? a <= b : a == b;
}

// ---- floats: in f64; the caller rounds to the dtype, once

double float_max(double a, double b) { return std::isnan(b) || b > a ? b : a; }
double float_min(double a, double b) { return std::isnan(b) || b < a ? b : a; }

// What fmod leaves is exact, and has the sign of a; one more b gives it that of b.
bool has_other_sign(double rest, double b) { return rest != 0 && (rest < 0) != (b < 0); }
double float_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return has_other_sign(rest, b) ? rest + b : rest;
}
// Python's and NumPy's: a multiple of b over b is near a whole number, which it is rounded to.
double float_floor_div(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b);
  const double quotient = (a - rest) / b - (has_other_sign(rest, b) ? 1 : 0);
  return quotient == 0 ? std::copysign(0.0, a / b) : std::nearbyint(quotient);
}

// In f32 itself: the f64 sum would have been rounded before.
double mul_add(DType dtype, double a, double b, double c) {
  if (dtype != DType::F32) return std::fma(a, b, c);
  return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

// Exact but for the last step; processors have this, infinite exponents of NaN included.
double scale(double a, double b) {
  constexpr double kFar = 5000;  // beyond it nothing is left of any number
  if (std::isnan(b)) return b;
  if (std::isinf(b)) return (std::isnan(a) ? 1 : a) * (b > 0 ? b : 0);
  return std::ldexp(a, static_cast<int>(std::clamp(std::floor(b), -kFar, kFar)));
}

// clang-format off
double float_op(Op op, DType dtype, double a, double b) {
  switch (op) {
    case Op::Neg:      return -a;
    case Op::Abs:      return std::fabs(a);
    case Op::Sqrt:     return std::sqrt(a);
    case Op::Exp:      return std::exp(a);
    case Op::Exp2:     return std::exp2(a);
    case Op::Log:      return std::log(a);
    case Op::Log2:     return std::log2(a);
    case Op::Log10:    return std::log10(a);
    case Op::Log1p:    return std::log1p(a);
    case Op::Expm1:    return std::expm1(a);
    case Op::Sin:      return std::sin(a);
    case Op::Cos:      return std::cos(a);
    case Op::Sinh:     return std::sinh(a);
    case Op::Cosh:     return std::cosh(a);
    case Op::Tanh:     return std::tanh(a);
    case Op::Asinh:    return std::asinh(a);
    case Op::Erf:      return std::erf(a);
    case Op::Erfc:     return std::erfc(a);
    case Op::Floor:    return std::floor(a);
    case Op::Ceil:     return std::ceil(a);
    case Op::Trunc:    return std::trunc(a);
    case Op::Scale:    return scale(a, b);
    case Op::Round:    return std::nearbyint(a);
    case Op::Add:      return a + b;
    case Op::Mul:      return a * b;
    case Op::Div:      return a / b;
    case Op::FloorDiv: return float_floor_div(a, b);
    case Op::Mod:      return float_mod(a, b);
    case Op::Max:      return float_max(a, b);
    case Op::Min:      return float_min(a, b);
    case Op::Pow:      return std::pow(a, b);
    case Op::Atan2:    return std::atan2(a, b);
    default:           reject(op, dtype);
  }
}
// clang-format on

// ---- integers: in 64 bits; the caller wraps to the dtype

uint64_t magnitude(int64_t a) {
  return a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
}
uint64_t magnitude(uint64_t a) { return a; }
int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : floor_div(a, b); }
uint64_t quotient(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
int64_t remainder(int64_t a, int64_t b) { return b == 0 ? 0 : floor_mod(a, b); }
uint64_t remainder(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }

// Read as unsigned, a negative count is a large one. From the dtype's width on only bits are left
// that wrapping drops.
uint64_t shift_left(uint64_t a, uint64_t count) { return count < 64 ? a << count : 0; }
// Beyond 63 every bit is a copy of the sign.
int64_t shift_right(int64_t a, int64_t count) {
  return count < 0 ? 0 : a >> (count < 63 ? count : 63);
}
uint64_t shift_right(uint64_t a, uint64_t count) { return count < 64 ? a >> count : 0; }

// T is int64_t or uint64_t, in which every value of the dtype is itself. Sums, products and bits
// are the same in both, modulo 2^64.
// clang-format off
template <typename T>
uint64_t int_op(Op op, DType dtype, T a, T b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Neg:      return 0 - x;
    case Op::Abs:      return magnitude(a);
    case Op::Add:      return x + y;
    case Op::Mul:      return x * y;
    case Op::FloorDiv: return static_cast<uint64_t>(quotient(a, b));
    case Op::Mod:      return static_cast<uint64_t>(remainder(a, b));
    case Op::Max:      return a < b ? y : x;
    case Op::Min:      return b < a ? y : x;
    case Op::And:      return x & y;
    case Op::Or:       return x | y;
    case Op::Xor:      return x ^ y;
    case Op::Shl:      return shift_left(x, y);
    case Op::Shr:      return static_cast<uint64_t>(shift_right(a, b));
    default:           reject(op, dtype);
  }
}
// clang-format on

// ---- symbolic integers: exact, or an error

int64_t in_range(std::optional<int64_t> value, const char* sign, int64_t a, int64_t b) {
  if (!value) fail(fmt::format("a size does not fit 64 bits: {} {} {}", a, sign, b));
  return *value;
}

int64_t divisor(Op op, int64_t a, int64_t b) {
  if (b == 0) fail(fmt::format("a size is divided by zero: {} of {} and 0", name(op), a));
  return b;
}

std::optional<int64_t> checked_floor_div(int64_t a, int64_t b) {
  if (b == -1) return checked_mul(a, -1);
  return floor_div(a, b);
}

// clang-format off
int64_t index_op(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::Add:      return in_range(checked_add(a, b), "+", a, b);
    case Op::Mul:      return in_range(checked_mul(a, b), "*", a, b);
    case Op::FloorDiv: return in_range(checked_floor_div(a, divisor(op, a, b)), "/", a, b);
    case Op::Mod:      return floor_mod(a, divisor(op, a, b));
    case Op::Max:      return a < b ? b : a;
    case Op::Min:      return b < a ? b : a;
    default:           reject(op, DType::Index);
  }
}

uint64_t bool_op(Op op, uint64_t a, uint64_t b) {
  switch (op) {
    case Op::And: return a & b;
    case Op::Or:  return a | b;
    case Op::Xor: return a ^ b;
    default:      reject(op, DType::Bool);
  }
}
// clang-format on

// ---- between dtypes

Scalar checked_cast(Scalar value, DType to) {
  if (!can_cast(value, to)) fail(fmt::format("{} is not a size of 64 bits", to_text(value)));
  return cast(value, to);
}

Scalar bitcast(Scalar value, DType to) {
  const DType from = value.dtype();
  const uint64_t code = is_float(from) ? encode(from, value.as_double()) : value.bits();
  if (!is_float(to)) return Scalar::of_int(to, static_cast<int64_t>(code));
  const uint64_t unused = 64 - 8 * byte_size(to);  // the sign of a narrow integer
  return Scalar::of(to, decode(to, code << unused >> unused));
}

uint32_t word(Scalar value) { return static_cast<uint32_t>(value.bits()); }

}  // namespace

Scalar evaluate(Op op, DType dtype, std::span<const Scalar> sources) {
  const Scalar a = sources[0], b = sources.size() > 1 ? sources[1] : a;
  switch (op) {
    case Op::Where: return a.bits() != 0 ? b : sources[2];
    case Op::Threefry:
      return Scalar::of_int(dtype, threefry(word(a), word(b), word(sources[2]), word(sources[3])));
    case Op::MulAdd:
      return Scalar::of(dtype,
                        mul_add(dtype, a.as_double(), b.as_double(), sources[2].as_double()));
    case Op::Cast: return checked_cast(a, dtype);
    case Op::Bitcast: return bitcast(a, dtype);
    default: break;
  }
  const DType type = a.dtype();
  switch (kind(type)) {
    case DTypeKind::Float: {
      const double x = std::bit_cast<double>(a.bits()), y = std::bit_cast<double>(b.bits());
      if (is_comparison(op)) return Scalar::of_int(dtype, compare(op, x, y));
      return Scalar::of(dtype, float_op(op, type, x, y));
    }
    case DTypeKind::Signed: {
      const int64_t x = static_cast<int64_t>(a.bits()), y = static_cast<int64_t>(b.bits());
      if (is_comparison(op)) return Scalar::of_int(dtype, compare(op, x, y));
      return Scalar::of_int(dtype, static_cast<int64_t>(int_op(op, type, x, y)));
    }
    case DTypeKind::Unsigned: {
      const uint64_t x = a.bits(), y = b.bits();
      if (is_comparison(op)) return Scalar::of_int(dtype, compare(op, x, y));
      return Scalar::of_int(dtype, static_cast<int64_t>(int_op(op, type, x, y)));
    }
    case DTypeKind::Index: {
      const int64_t x = a.as_int(), y = b.as_int();
      return Scalar::of_int(dtype, is_comparison(op) ? compare(op, x, y) : index_op(op, x, y));
    }
    case DTypeKind::Bool: {
      const uint64_t x = a.bits(), y = b.bits();
      if (is_comparison(op)) return Scalar::of_int(dtype, compare(op, x, y));
      return Scalar::of_int(dtype, static_cast<int64_t>(bool_op(op, x, y)));
    }
  }
  reject(op, type);
}

// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011). Every fourth
// round adds the next two of the three key words, the third being the parity of the others.
uint32_t threefry(uint32_t counter0, uint32_t counter1, uint32_t key0, uint32_t key1) {
  constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  constexpr uint32_t kParity = 0x1BD11BDA, kRounds = 20;
  const uint32_t keys[3] = {key0, key1, key0 ^ key1 ^ kParity};
  uint32_t x = counter0 + key0, y = counter1 + key1;
  for (uint32_t round = 0; round < kRounds; ++round) {
    x += y;
    y = std::rotl(y, kRotations[round % 8]) ^ x;
    if (round % 4 != 3) continue;
    const uint32_t injection = round / 4 + 1;
    x += keys[injection % 3];
    y += keys[(injection + 1) % 3] + injection;
  }
  return x;
}

}  // namespace anneal
