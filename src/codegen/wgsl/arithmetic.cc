#include "codegen/wgsl/arithmetic.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include <anneal/error.h>

#include "codegen/wgsl/library.h"
#include "ir/float_formats.h"

namespace anneal::wgsl {
namespace {

int width(DType dtype) { return static_cast<int>(8 * byte_size(dtype)); }

[[noreturn]] void fail_op(Op op, DType dtype) {
  throw InternalError(fmt::format("{} of {} has no WGSL", name(op), name(dtype)));
}

}  // namespace

Held Arithmetic::held(DType dtype) const {
  if (is_bool(dtype)) return Held::Bool;
  if (is_index(dtype)) return wide_index_ ? Held::Words : Held::Signed;
  if (dtype == DType::F32) return Held::Float;
  if (is_narrow_float(dtype)) return Held::Unsigned;
  if (byte_size(dtype) == 8) {
    if (is_float(dtype)) throw InternalError("WGSL has no f64");
    return Held::Words;
  }
  return is_signed(dtype) ? Held::Signed : Held::Unsigned;
}

const char* Arithmetic::type(DType dtype) const {
  switch (held(dtype)) {
    case Held::Bool: return "bool";
    case Held::Signed: return "i32";
    case Held::Unsigned: return "u32";
    case Held::Float: return "f32";
    case Held::Words: return "vec2<u32>";
  }
  return "";
}

std::string Arithmetic::call(const char* function,
                             std::initializer_list<std::string_view> arguments) {
  used_.insert(function);
  return fmt::format("{}({})", function, fmt::join(arguments, ", "));
}

std::string Arithmetic::library() const { return library_text(used_); }

// The literals of one expression are folded when a shader is compiled, where an overflow is an
// error; so whoever declares a constant names it first and computes with the name.
std::string Arithmetic::constant(DType dtype, uint64_t bits) {
  if (is_float(dtype)) {
    const double number = std::bit_cast<double>(bits);
    if (is_narrow_float(dtype)) return fmt::format("{}u", encode(dtype, number));
    const auto single = static_cast<float>(number);
    if (std::isfinite(single) && (single == 0 || std::isnormal(single)))
      return single == 0 && std::signbit(single) ? "-0.0f" : fmt::format("{}f", single);
    return fmt::format("bitcast<f32>({:#x}u)", std::bit_cast<uint32_t>(single));
  }
  const auto number = static_cast<int64_t>(bits);
  switch (held(dtype)) {
    case Held::Bool: return bits ? "true" : "false";
    case Held::Signed: return fmt::format("i32({})", static_cast<int32_t>(number));
    case Held::Unsigned: return fmt::format("{}u", static_cast<uint32_t>(bits));
    default:
      return fmt::format("vec2<u32>({}u, {}u)", static_cast<uint32_t>(bits),
                         static_cast<uint32_t>(bits >> 32));
  }
}

std::string Arithmetic::wrapped(DType dtype, const std::string& text) {
  if (byte_size(dtype) >= 4) return text;
  const int spare = 32 - width(dtype);
  if (is_signed(dtype)) return fmt::format("((({}) << {}u) >> {}u)", text, spare, spare);
  return fmt::format("(({}) & {:#x}u)", text, (1U << width(dtype)) - 1);
}

std::string Arithmetic::compute(Op op, DType dtype, std::span<const Operand> operands) {
  const Operand& a = operands[0];
  switch (op) {
    case Op::Where:
      return fmt::format("select({}, {}, {})", operands[2].text, operands[1].text, a.text);
    case Op::Cast:
    case Op::AsIndex: return cast(a, dtype);
    case Op::Bitcast: return bitcast(a, dtype);
    case Op::Threefry:
      return call("threefry", {a.text, operands[1].text, operands[2].text, operands[3].text});
    case Op::Lt:
    case Op::Le:
    case Op::Eq: return compare(op, a, operands[1]);
    default: break;
  }
  switch (held(a.dtype)) {
    case Held::Bool: {
      const std::string &x = a.text, &y = operands[1].text;
      if (op == Op::And || op == Op::Mul || op == Op::Min) return fmt::format("({} & {})", x, y);
      if (op == Op::Or || op == Op::Max) return fmt::format("({} | {})", x, y);
      if (op == Op::Xor) return fmt::format("({} != {})", x, y);
      fail_op(op, a.dtype);
    }
    case Held::Float: return of_floats(op, operands);
    case Held::Words: return of_words(op, dtype, operands);
    default: return integer(op, dtype, operands);
  }
}

std::string Arithmetic::compare(Op op, const Operand& a, const Operand& b) {
  const std::string &x = a.text, &y = b.text;
  switch (held(a.dtype)) {
    case Held::Bool:
      if (op == Op::Eq) return fmt::format("({} == {})", x, y);
      return fmt::format("(!{} {} {})", x, op == Op::Lt ? '&' : '|', y);
    case Held::Words: {
      if (op == Op::Eq) return fmt::format("all({} == {})", x, y);
      const char* less = is_signed_order(a.dtype) ? "lt_i64" : "lt_u64";
      return op == Op::Lt ? call(less, {x, y}) : "!" + call(less, {y, x});
    }
    default:
      return fmt::format("({} {} {})", x, op == Op::Lt ? "<" : op == Op::Le ? "<=" : "==", y);
  }
}

std::string Arithmetic::of_floats(Op op, std::span<const Operand> operands) {
  const std::string& a = operands[0].text;
  const std::string& b = operands.size() > 1 ? operands[1].text : a;
  switch (op) {
    case Op::Neg: return fmt::format("(-{})", a);
    case Op::Abs: return fmt::format("abs({})", a);
    case Op::Sqrt: return fmt::format("sqrt({})", a);
    case Op::Floor: return fmt::format("floor({})", a);
    case Op::Ceil: return fmt::format("ceil({})", a);
    case Op::Trunc: return fmt::format("trunc({})", a);
    case Op::Round: return call("round_f32", {a});
    case Op::Add: return fmt::format("({} + {})", a, b);
    case Op::Mul: return fmt::format("({} * {})", a, b);
    case Op::Div: return fmt::format("({} / {})", a, b);
    case Op::FloorDiv: return call("floor_div_f32", {a, b});
    case Op::Mod: return call("mod_f32", {a, b});
    case Op::Max: return call("max_f32", {a, b});
    case Op::Min: return call("min_f32", {a, b});
    case Op::MulAdd: return fmt::format("fma({}, {}, {})", a, b, operands[2].text);
    default: fail_op(op, DType::F32);
  }
}

std::string Arithmetic::integer(Op op, DType dtype, std::span<const Operand> operands) {
  const std::string& a = operands[0].text;
  const std::string& b = operands.size() > 1 ? operands[1].text : a;
  const bool order = held(dtype) == Held::Signed;
  const std::string bits = std::to_string(width(is_index(dtype) ? DType::I32 : dtype));
  switch (op) {
    case Op::Neg:
      return wrapped(dtype, order ? fmt::format("(-{})", a) : fmt::format("(0u - {})", a));
    case Op::Abs: return order ? wrapped(dtype, fmt::format("abs({})", a)) : a;
    case Op::Add: return wrapped(dtype, fmt::format("({} + {})", a, b));
    case Op::Mul: return wrapped(dtype, fmt::format("({} * {})", a, b));
    case Op::Max: return fmt::format("max({}, {})", a, b);
    case Op::Min: return fmt::format("min({}, {})", a, b);
    case Op::And: return fmt::format("({} & {})", a, b);
    case Op::Or: return fmt::format("({} | {})", a, b);
    case Op::Xor: return fmt::format("({} ^ {})", a, b);
    case Op::FloorDiv: return wrapped(dtype, call(order ? "floor_div_i32" : "div_u32", {a, b}));
    case Op::Mod: return call(order ? "mod_i32" : "mod_u32", {a, b});
    case Op::Shl: {
      if (!order) return wrapped(dtype, call("shl_32", {a, b, bits + "u"}));
      const std::string as_u32 = fmt::format("bitcast<u32>({})", a);
      const std::string by = fmt::format("bitcast<u32>({})", b);
      return wrapped(dtype,
                     fmt::format("bitcast<i32>({})", call("shl_32", {as_u32, by, bits + "u"})));
    }
    case Op::Shr:
      return order ? call("shr_i32", {a, b, bits}) : call("shr_u32", {a, b, bits + "u"});
    default: fail_op(op, dtype);
  }
}

std::string Arithmetic::divide_unsigned(Op op, const std::string& index, const std::string& by) {
  const bool rest = op == Op::Mod;
  if (wide_index_) return call(rest ? "mod_u64" : "floor_div_u64", {index, by});
  return fmt::format("i32(u32({}) {} u32({}))", index, rest ? '%' : '/', by);
}

std::string Arithmetic::of_words(Op op, DType dtype, std::span<const Operand> operands) {
  const std::string& a = operands[0].text;
  const std::string& b = operands.size() > 1 ? operands[1].text : a;
  const bool order = is_signed_order(dtype);
  const char* less = order ? "lt_i64" : "lt_u64";
  switch (op) {
    case Op::Neg: return call("neg_64", {a});
    case Op::Abs: return order ? call("abs_64", {a}) : a;
    case Op::Add: return call("add_64", {a, b});
    case Op::Mul: return call("mul_64", {a, b});
    case Op::Max: return fmt::format("select({}, {}, {})", a, b, call(less, {a, b}));
    case Op::Min: return fmt::format("select({}, {}, {})", a, b, call(less, {b, a}));
    case Op::And: return fmt::format("({} & {})", a, b);
    case Op::Or: return fmt::format("({} | {})", a, b);
    case Op::Xor: return fmt::format("({} ^ {})", a, b);
    case Op::FloorDiv: return call(order ? "floor_div_i64" : "floor_div_u64", {a, b});
    case Op::Mod: return call(order ? "mod_i64" : "mod_u64", {a, b});
    case Op::Shl: return call("shl_64", {a, b});
    case Op::Shr: return call(order ? "shr_i64" : "shr_u64", {a, b});
    default: fail_op(op, dtype);
  }
}

// ---- casts

std::string Arithmetic::to_float(const Operand& from) {
  switch (from.dtype) {
    case DType::F32: return from.text;
    case DType::F16: return call("widen_f16", {from.text});
    case DType::BF16: return call("widen_bf16", {from.text});
    case DType::F8E4M3: return call("widen_f8e4m3", {from.text});
    case DType::F8E5M2: return call("widen_f8e5m2", {from.text});
    default: break;
  }
  switch (held(from.dtype)) {
    case Held::Bool: return fmt::format("select(0.0f, 1.0f, {})", from.text);
    case Held::Words:
      return call(is_signed_order(from.dtype) ? "i64_to_f32" : "u64_to_f32", {from.text});
    default: return fmt::format("f32({})", from.text);
  }
}

std::string Arithmetic::to_words(const Operand& from) {
  switch (held(from.dtype)) {
    case Held::Words: return from.text;
    case Held::Bool: return fmt::format("vec2<u32>(u32({}), 0u)", from.text);
    case Held::Unsigned: return fmt::format("vec2<u32>({}, 0u)", from.text);
    default:
      return fmt::format("vec2<u32>(bitcast<u32>({}), bitcast<u32>({} >> 31u))", from.text,
                         from.text);
  }
}

std::string Arithmetic::float_to_integer(const std::string& text, DType to) {
  if (held(to) == Held::Words)
    return call(is_signed_order(to) ? "f32_to_i64" : "f32_to_u64", {text});
  used_.insert("is_nan");
  const DType bounds = is_index(to) ? DType::I32 : to;
  const std::string most = std::to_string(max_value(bounds));
  const std::string past =
      fmt::format("{}f", std::ldexp(1.0F, width(bounds) - (held(to) == Held::Signed)));
  if (held(to) == Held::Unsigned) return call("f32_to_u32", {text, most + "u", past});
  return call("f32_to_i32",
              {text, fmt::format("i32({})", min_value(bounds)), "i32(" + most + ")", past});
}

std::string Arithmetic::cast(const Operand& from, DType to) {
  if (from.dtype == to) return from.text;
  if (is_float(to)) {
    std::string single = to_float(from);
    switch (to) {
      case DType::F16: return call("narrow_f16", {single});
      case DType::BF16: return call("narrow_bf16", {single});
      case DType::F8E4M3: return call("narrow_f8e4m3", {single});
      case DType::F8E5M2: return call("narrow_f8e5m2", {single});
      default: return single;
    }
  }
  if (is_float(from.dtype)) {
    const std::string single = to_float(from);
    // NaN is true; some compilers take "unequal" for "less or greater".
    return is_bool(to) ? fmt::format("!({} == 0.0f)", single) : float_to_integer(single, to);
  }
  if (is_bool(to)) {
    if (held(from.dtype) == Held::Words)
      return fmt::format("any({} != vec2<u32>(0u, 0u))", from.text);
    return fmt::format("({} != {}(0))", from.text, type(from.dtype));
  }
  if (held(to) == Held::Words) return to_words(from);
  if (is_index(to)) {
    if (from.dtype == DType::I64) return call("i64_to_index", {from.text});
    if (from.dtype == DType::U64) return call("u64_to_index", {from.text});
    if (from.dtype == DType::U32) return call("u32_to_index", {from.text});
  }
  std::string word = from.text;
  if (held(from.dtype) == Held::Words) word += ".x";
  if (held(from.dtype) != held(to) || held(from.dtype) == Held::Words)
    word = held(from.dtype) == Held::Bool ? fmt::format("{}({})", type(to), word)
           : held(from.dtype) == Held::Words && held(to) == Held::Unsigned
               ? word
               : fmt::format("bitcast<{}>({})", type(to), word);
  const bool fits =
      is_bool(from.dtype) || (!is_index(from.dtype) && byte_size(from.dtype) < byte_size(to) &&
                              (is_unsigned(from.dtype) || is_signed(to)));
  return fits ? word : wrapped(to, word);
}

std::string Arithmetic::bitcast(const Operand& from, DType to) {
  if (held(from.dtype) == Held::Words || from.dtype == to) return from.text;
  if (is_bool(from.dtype))
    return cast({cast(from, DType::U8), DType::U8}, is_float(to) ? DType::U8 : to);
  if (is_bool(to)) return fmt::format("({} != {}(0))", from.text, type(from.dtype));
  const std::string same = held(from.dtype) == held(to)
                               ? from.text
                               : fmt::format("bitcast<{}>({})", type(to), from.text);
  // Codes of narrow floats are never negative; narrow integers may be.
  return is_float(to) && byte_size(to) < 4
             ? wrapped(byte_size(to) == 2 ? DType::U16 : DType::U8, same)
         : is_float(to) ? same
                        : wrapped(to, same);
}

}  // namespace anneal::wgsl
