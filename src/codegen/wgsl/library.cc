#include "codegen/wgsl/library.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include <anneal/error.h>

namespace anneal::wgsl {
namespace {

struct Function {
  std::string_view name, text;
};

// A function may call those above it. Drivers may take floats for numbers that are never NaN, so
// NaN is found by its bits. Each is written out wherever it is called, and some drivers take time
// that grows with the square of the branches in a shader: so there are none where a select will do,
// and `&` and `|` of bools, which do not branch, instead of `&&` and `||`.
constexpr Function kFunctions[] = {
    {"is_nan", R"(
fn is_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; })"},
    {"max_f32", R"(
fn max_f32(a: f32, b: f32) -> f32 { return select(select(a, b, b > a), b, is_nan(b)); })"},
    {"min_f32", R"(
fn min_f32(a: f32, b: f32) -> f32 { return select(select(a, b, b < a), b, is_nan(b)); })"},
    {"round_f32", R"(
fn round_f32(a: f32) -> f32 { return select(round(a), a, is_nan(a) | (abs(a) >= 8388608.0)); })"},
    // ---- remainders: long division, as floats may round and lose what is denormal
    {"mantissa_f32", R"(
// Positive bits as mantissa * 2^(exponent - 150), the mantissa below 2^24.
fn mantissa_f32(bits: u32) -> vec2<u32> {
  let exponent = bits >> 23u;
  return vec2<u32>((bits & 0x7fffffu) | select(0x800000u, 0u, exponent == 0u), max(exponent, 1u));
})"},
    {"pack_f32", R"(
fn pack_f32(mantissa: u32, exponent: u32) -> u32 {
  let up = min(countLeadingZeros(mantissa) - 8u, exponent - 1u);
  let moved = mantissa << up;
  return select(moved, (moved & 0x7fffffu) | ((exponent - up) << 23u), moved >= 0x800000u);
})"},
    {"divide_f32", R"(
// The bits of the remainder and of the quotient, which is exact below 2^24, of positive bits, a
// finite and b not 0. What is left of a goes eight bits at a time, as the rest has 24.
fn divide_f32(a: u32, b: u32) -> vec2<u32> {
  let x = mantissa_f32(a);
  let y = mantissa_f32(b);
  if (a < b) { return vec2<u32>(a, 0u); }
  var rest = x.x % y.x;
  var quotient = f32(x.x / y.x);
  var left = x.y - y.y;
  while (left > 0u) {
    let taken = min(left, 8u);
    let next = rest << taken;
    rest = next % y.x;
    quotient = quotient * f32(1u << taken) + f32(next / y.x);
    left -= taken;
  }
  return vec2<u32>(pack_f32(rest, y.y), bitcast<u32>(quotient));
})"},
    {"subtract_f32", R"(
// y - x of positive bits, x below y. Small ones in units of the least denormal, as drivers take
// denormals for 0.
fn subtract_f32(y: u32, x: u32) -> u32 {
  let a = mantissa_f32(y);
  let b = mantissa_f32(x);
  let is_small = a.y < 64u;
  let units = f32(a.x) * bitcast<f32>((min(a.y, 64u) + 126u) << 23u) -
              f32(b.x) * bitcast<f32>((min(b.y, 64u) + 126u) << 23u);
  let small = select(bitcast<u32>(units) - (149u << 23u), u32(units), units < 16777216.0f);
  return select(bitcast<u32>(bitcast<f32>(y) - bitcast<f32>(x)), small, is_small);
})"},
    {"mod_f32", R"(
fn mod_f32(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  let sign = bitcast<u32>(b) & 0x80000000u;
  let other_sign = ((bitcast<u32>(a) ^ bitcast<u32>(b)) >> 31u) != 0u;
  let none = (x >= 0x7f800000u) | (y > 0x7f800000u) | (y == 0u);
  let rest = divide_f32(select(x, 0u, none), select(y, 1u, none)).x;
  let result = sign | select(rest, subtract_f32(y, rest), other_sign & (rest != 0u));
  return bitcast<f32>(select(result, 0x7fc00000u, none));
})"},
    {"floor_div_f32", R"(
fn floor_div_f32(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
  let none = (x >= 0x7f800000u) | (y > 0x7f800000u) | (y == 0u);
  let parts = divide_f32(select(x, 0u, none), select(y, 1u, none));
  let lower = select(0.0f, 1.0f, (sign != 0u) & (parts.x != 0u));
  let whole = bitcast<u32>(bitcast<f32>(parts.y) + lower) | sign;
  let by_zero = (y == 0u) & (x != 0u) & (x <= 0x7f800000u);
  return bitcast<f32>(select(select(whole, 0x7fc00000u, none), 0x7f800000u | sign, by_zero));
})"},
    // ---- integers of 32 bits
    {"floor_div_i32", R"(
fn floor_div_i32(a: i32, b: i32) -> i32 {
  let by = select(b, 1, (b == 0) | (b == -1));
  let q = a / by;
  let r = a - q * by;
  let floored = q - select(0, 1, (r != 0) & ((r ^ by) < 0));
  return select(select(floored, -a, b == -1), 0, b == 0);
})"},
    {"mod_i32", R"(
fn mod_i32(a: i32, b: i32) -> i32 {
  let by = select(b, 1, (b == 0) | (b == -1));
  let r = a % by;
  return r + select(0, by, (r != 0) & ((r ^ by) < 0));
})"},
    {"div_u32", R"(
fn div_u32(a: u32, b: u32) -> u32 { return select(a / max(b, 1u), 0u, b == 0u); })"},
    {"mod_u32", R"(
fn mod_u32(a: u32, b: u32) -> u32 { return select(a % max(b, 1u), 0u, b == 0u); })"},
    {"shl_32", R"(
fn shl_32(a: u32, b: u32, width: u32) -> u32 { return select(0u, a << (b & 31u), b < width); })"},
    {"shr_u32", R"(
fn shr_u32(a: u32, b: u32, width: u32) -> u32 { return select(0u, a >> (b & 31u), b < width); })"},
    {"shr_i32", R"(
fn shr_i32(a: i32, b: i32, width: i32) -> i32 {
  return select(a >> u32(clamp(b, 0, width - 1)), 0, b < 0);
})"},
    {"f32_to_i32", R"(
fn f32_to_i32(a: f32, least: i32, most: i32, past: f32) -> i32 {
  let inside = select(i32(a), least, a <= f32(least));
  return select(select(inside, most, a >= past), 0, is_nan(a));
})"},
    {"f32_to_u32", R"(
fn f32_to_u32(a: f32, most: u32, past: f32) -> u32 {
  return select(select(u32(a), most, a >= past), 0u, is_nan(a) | (a <= 0.0));
})"},
    {"threefry", R"(
fn rotate_left(a: u32, by: u32) -> u32 { return (a << by) | (a >> (32u - by)); }
fn threefry(a: u32, b: u32, c: u32, d: u32) -> u32 {
  var keys = array<u32, 3>(c, d, c ^ d ^ 0x1BD11BDAu);
  var turns = array<u32, 8>(13u, 15u, 26u, 6u, 17u, 29u, 16u, 24u);
  var x = a + c;
  var y = b + d;
  for (var i = 0u; i < 20u; i++) {
    x += y;
    y = rotate_left(y, turns[i & 7u]) ^ x;
    if ((i & 3u) == 3u) {
      let round = i / 4u + 1u;
      x += keys[round % 3u];
      y += keys[(round + 1u) % 3u] + round;
    }
  }
  return x;
})"},
    // ---- integers of 64 bits, the lower word first
    {"add_64", R"(
fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
})"},
    {"neg_64", R"(
fn neg_64(a: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(~a.x + 1u, ~a.y + select(0u, 1u, a.x == 0u));
})"},
    {"abs_64", R"(
fn abs_64(a: vec2<u32>) -> vec2<u32> { return select(a, neg_64(a), (a.y >> 31u) != 0u); })"},
    {"mul_64", R"(
fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let a0 = a.x & 0xffffu;
  let a1 = a.x >> 16u;
  let b0 = b.x & 0xffffu;
  let b1 = b.x >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  let cross = a0 * b1 + (middle & 0xffffu);
  let high = a1 * b1 + (middle >> 16u) + (cross >> 16u);
  return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
})"},
    {"lt_u64", R"(
fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return select(a.y < b.y, a.x < b.x, a.y == b.y); })"},
    {"lt_i64", R"(
fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(bitcast<i32>(a.y) < bitcast<i32>(b.y), a.x < b.x, a.y == b.y);
})"},
    {"shl_64", R"(
fn shl_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = b.x & 31u;
  let low = a.x << n;
  let high = (a.y << n) | select(0u, a.x >> ((32u - n) & 31u), n != 0u);
  let moved = select(vec2<u32>(low, high), vec2<u32>(0u, low), b.x > 31u);
  return select(moved, vec2<u32>(0u, 0u), (b.y != 0u) | (b.x > 63u));
})"},
    {"shr_u64", R"(
fn shr_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = b.x & 31u;
  let low = (a.x >> n) | select(0u, a.y << ((32u - n) & 31u), n != 0u);
  let high = a.y >> n;
  let moved = select(vec2<u32>(low, high), vec2<u32>(high, 0u), b.x > 31u);
  return select(moved, vec2<u32>(0u, 0u), (b.y != 0u) | (b.x > 63u));
})"},
    {"shr_i64", R"(
fn shr_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = b.x & 31u;
  let filled = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
  let low = (a.x >> n) | select(0u, a.y << ((32u - n) & 31u), n != 0u);
  let high = bitcast<u32>(bitcast<i32>(a.y) >> n);
  let moved = select(vec2<u32>(low, high), vec2<u32>(high, filled), b.x > 31u);
  let kept = select(moved, vec2<u32>(filled, filled), (b.y != 0u) | (b.x > 63u));
  return select(kept, vec2<u32>(0u, 0u), (b.y >> 31u) != 0u);
})"},
    {"divide_u64", R"(
// The quotient and the remainder; the long way only where a high word is there.
fn divide_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  var quotient = vec2<u32>(a.x / max(b.x, 1u), 0u);
  var rest = vec2<u32>(a.x % max(b.x, 1u), 0u);
  if ((a.y | b.y) != 0u) {
    let minus_b = neg_64(b);
    quotient = vec2<u32>(0u, 0u);
    rest = vec2<u32>(0u, 0u);
    for (var i = 0u; i < 64u; i++) {
      let bit = 63u - i;
      let word = select(a.x, a.y, bit > 31u);
      let carried = rest.y >> 31u;
      let next = (word >> (bit & 31u)) & 1u;
      rest = vec2<u32>((rest.x << 1u) | next, (rest.y << 1u) | (rest.x >> 31u));
      let fits = (carried != 0u) | !lt_u64(rest, b);
      let one = select(0u, 1u, fits) << (bit & 31u);
      rest = select(rest, add_64(rest, minus_b), fits);
      quotient |= select(vec2<u32>(one, 0u), vec2<u32>(0u, one), bit > 31u);
    }
  }
  return select(vec4<u32>(quotient, rest), vec4<u32>(), (b.x | b.y) == 0u);
})"},
    {"floor_div_u64", R"(
fn floor_div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return divide_u64(a, b).xy; })"},
    {"mod_u64", R"(
fn mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return divide_u64(a, b).zw; })"},
    {"mod_i64", R"(
fn mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let size = divide_u64(abs_64(a), abs_64(b)).zw;
  let rest = select(size, neg_64(size), (a.y >> 31u) != 0u);
  let moves = ((rest.x | rest.y) != 0u) & (((a.y ^ b.y) >> 31u) != 0u);
  return select(rest, add_64(rest, b), moves);
})"},
    {"floor_div_i64", R"(
fn floor_div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let parts = divide_u64(abs_64(a), abs_64(b));
  let lower = vec2<u32>(select(0u, 1u, (parts.z | parts.w) != 0u), 0u);
  return select(parts.xy, neg_64(add_64(parts.xy, lower)), ((a.y ^ b.y) >> 31u) != 0u);
})"},
    {"u64_to_f32", R"(
// The low bits that do not fit are folded into one, so that only the conversion rounds.
fn u64_to_f32(a: vec2<u32>) -> f32 {
  let zeros = countLeadingZeros(a.y);
  let left = shl_64(a, vec2<u32>(zeros, 0u));
  let folded = left.y | select(0u, 1u, left.x != 0u);
  return f32(folded) * bitcast<f32>((127u + 32u - zeros) << 23u);
})"},
    {"i64_to_f32", R"(
fn i64_to_f32(a: vec2<u32>) -> f32 {
  let size = u64_to_f32(abs_64(a));
  return select(size, -size, (a.y >> 31u) != 0u);
})"},
    {"f32_to_u64", R"(
fn f32_to_u64(a: f32) -> vec2<u32> {
  let bits = bitcast<u32>(a);
  let exponent = (bits >> 23u) - 127u;
  let mantissa = (bits & 0x7fffffu) | 0x800000u;
  let large = shl_64(vec2<u32>(mantissa, 0u), vec2<u32>(exponent - 23u, 0u));
  let small = vec2<u32>(mantissa >> ((23u - exponent) & 31u), 0u);
  let inside = select(small, large, exponent >= 23u);
  let bounded = select(inside, vec2<u32>(0xffffffffu, 0xffffffffu), a >= 18446744073709551616.0);
  return select(bounded, vec2<u32>(0u, 0u), is_nan(a) | (a < 1.0));
})"},
    {"f32_to_i64", R"(
fn f32_to_i64(a: f32) -> vec2<u32> {
  let size = f32_to_u64(abs(a));
  let inside = select(size, neg_64(size), a < 0.0);
  let low = select(inside, vec2<u32>(0u, 0x80000000u), a <= -9223372036854775808.0);
  let high = vec2<u32>(0xffffffffu, 0x7fffffffu);
  return select(select(low, high, a >= 9223372036854775808.0), vec2<u32>(0u, 0u), is_nan(a));
})"},
    // A position that no i32 holds is outside of every axis, as the nearest i32 is.
    {"i64_to_index", R"(
fn i64_to_index(a: vec2<u32>) -> i32 {
  let fits = bitcast<u32>(bitcast<i32>(a.x) >> 31u) == a.y;
  return select(select(0x7fffffff, -0x7fffffff, (a.y >> 31u) != 0u), bitcast<i32>(a.x), fits);
})"},
    {"u64_to_index", R"(
fn u64_to_index(a: vec2<u32>) -> i32 {
  return select(0x7fffffff, bitcast<i32>(a.x), (a.y | (a.x >> 31u)) == 0u);
})"},
    {"u32_to_index", R"(
fn u32_to_index(a: u32) -> i32 { return i32(min(a, 0x7fffffffu)); })"},
    // ---- narrow floats: the codes of formats, by their parts
    {"widen_bf16", R"(
fn widen_bf16(code: u32) -> f32 { return bitcast<f32>(code << 16u); })"},
    {"widen_parts", R"(
// Normal codes get f32's exponent, subnormal ones are integers times a power of two; the top
// exponent keeps its mantissa, but without infinity it is NaN.
fn widen_parts(code: u32, width: u32, mantissa: u32, rebias: u32, unit: f32, overflow: u32,
               infinity: bool) -> f32 {
  let sign = (code >> (width - 1u)) << 31u;
  let magnitude = code & ((1u << (width - 1u)) - 1u);
  let shifted = magnitude << (23u - mantissa);
  let small = bitcast<u32>(f32(magnitude) * unit);
  let bits = select(shifted + (rebias << 23u), small, magnitude < (1u << mantissa));
  let top = select(0x7fc00000u, shifted | 0x7f800000u, infinity);
  return bitcast<f32>(select(bits, top, magnitude >= overflow) | sign);
})"},
    {"widen_f16", R"(
fn widen_f16(code: u32) -> f32 {
  return widen_parts(code, 16u, 10u, 112u, 5.9604644775390625e-08, 0x7c00u, true);
})"},
    {"widen_f8e5m2", R"(
fn widen_f8e5m2(code: u32) -> f32 {
  return widen_parts(code, 8u, 2u, 112u, 1.52587890625e-05, 0x7cu, true);
})"},
    {"widen_f8e4m3", R"(
fn widen_f8e4m3(code: u32) -> f32 {
  return widen_parts(code, 8u, 3u, 120u, 0.001953125, 0x7fu, false);
})"},
    {"narrow_bf16", R"(
fn narrow_bf16(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(rounded, (bits >> 16u) | 0x40u, is_nan(a));
})"},
    {"narrow_parts", R"(
// The bits of a normal result are rounded as an integer; of a subnormal one, what is below its last
// place is shifted out, and rounded the same way.
fn narrow_parts(a: f32, width: u32, mantissa: u32, rebias: u32, overflow: u32, nan: u32) -> u32 {
  let bits = bitcast<u32>(a);
  let sign = (bits >> 31u) << (width - 1u);
  let magnitude = bits & 0x7fffffffu;
  let exponent = magnitude >> 23u;
  let is_small = exponent <= rebias;
  let dropped = 23u - mantissa + select(0u, rebias + 1u - exponent, is_small);
  let whole = select(magnitude - (rebias << 23u), (magnitude & 0x7fffffu) | 0x800000u, is_small);
  let by = min(dropped, 31u);
  let odd = (whole >> by) & 1u;
  let code = (whole + (1u << (by - 1u)) - 1u + odd) >> by;
  let is_zero = is_small & ((dropped > 25u) | (exponent == 0u));
  let rounded = select(min(code, overflow), 0u, is_zero);
  return sign | select(rounded, nan, magnitude > 0x7f800000u);
})"},
    {"narrow_f16", R"(
fn narrow_f16(a: f32) -> u32 { return narrow_parts(a, 16u, 10u, 112u, 0x7c00u, 0x7e00u); })"},
    {"narrow_f8e5m2", R"(
fn narrow_f8e5m2(a: f32) -> u32 { return narrow_parts(a, 8u, 2u, 112u, 0x7cu, 0x7eu); })"},
    {"narrow_f8e4m3", R"(
fn narrow_f8e4m3(a: f32) -> u32 { return narrow_parts(a, 8u, 3u, 120u, 0x7fu, 0x7fu); })"},
};

bool calls(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || (text[at - 1] != '_' && !isalnum(text[at - 1]));
    if (begins && text.substr(at + name.size()).starts_with('(')) return true;
  }
  return false;
}

}  // namespace

std::string library_text(const std::set<std::string, std::less<>>& names) {
  constexpr size_t kCount = std::size(kFunctions);
  std::array<bool, kCount> wanted{};
  for (const std::string& name : names) {
    bool found = false;
    for (size_t i = 0; i < kCount; ++i)
      if (kFunctions[i].name == name) wanted[i] = found = true;
    if (!found) throw InternalError(fmt::format("WGSL has no function {}", name));
  }
  for (size_t i = kCount; i-- > 0;)
    for (size_t below = 0; wanted[i] && below < i; ++below)
      if (calls(kFunctions[i].text, kFunctions[below].name)) wanted[below] = true;
  std::string text;
  for (size_t i = 0; i < kCount; ++i)
    if (wanted[i]) text += fmt::format("{}\n", kFunctions[i].text);
  return text;
}

}  // namespace anneal::wgsl
