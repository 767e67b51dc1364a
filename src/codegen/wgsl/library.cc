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
// NaN is found by its bits.
constexpr Function kFunctions[] = {
    {"is_nan", R"(
fn is_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; })"},
    {"max_f32", R"(
fn max_f32(a: f32, b: f32) -> f32 { return select(select(a, b, b > a), b, is_nan(b)); })"},
    {"min_f32", R"(
fn min_f32(a: f32, b: f32) -> f32 { return select(select(a, b, b < a), b, is_nan(b)); })"},
    {"round_f32", R"(
fn round_f32(a: f32) -> f32 { return select(round(a), a, is_nan(a) || abs(a) >= 8388608.0); })"},
    // ---- integers of 32 bits
    {"floor_div_i32", R"(
fn floor_div_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return -a; }
  let q = a / b;
  let r = a - q * b;
  return q - select(0, 1, r != 0 && ((r ^ b) < 0));
})"},
    {"mod_i32", R"(
fn mod_i32(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  let r = a % b;
  return r + select(0, b, r != 0 && ((r ^ b) < 0));
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
  if (is_nan(a)) { return 0; }
  if (a >= past) { return most; }
  if (a <= f32(least)) { return least; }
  return i32(a);
})"},
    {"f32_to_u32", R"(
fn f32_to_u32(a: f32, most: u32, past: f32) -> u32 {
  if (is_nan(a) || a <= 0.0) { return 0u; }
  if (a >= past) { return most; }
  return u32(a);
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
fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); })"},
    {"lt_i64", R"(
fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
})"},
    {"shl_64", R"(
fn shl_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.y != 0u || b.x > 63u) { return vec2<u32>(0u, 0u); }
  let n = b.x & 31u;
  if (b.x > 31u) { return vec2<u32>(0u, a.x << n); }
  return vec2<u32>(a.x << n, (a.y << n) | select(0u, a.x >> (32u - max(n, 1u)), n != 0u));
})"},
    {"shr_u64", R"(
fn shr_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.y != 0u || b.x > 63u) { return vec2<u32>(0u, 0u); }
  let n = b.x & 31u;
  if (b.x > 31u) { return vec2<u32>(a.y >> n, 0u); }
  return vec2<u32>((a.x >> n) | select(0u, a.y << (32u - max(n, 1u)), n != 0u), a.y >> n);
})"},
    {"shr_i64", R"(
fn shr_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if ((b.y >> 31u) != 0u) { return vec2<u32>(0u, 0u); }
  let filled = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
  if (b.y != 0u || b.x > 63u) { return vec2<u32>(filled, filled); }
  let n = b.x & 31u;
  let upper = bitcast<u32>(bitcast<i32>(a.y) >> n);
  if (b.x > 31u) { return vec2<u32>(upper, filled); }
  return vec2<u32>((a.x >> n) | select(0u, a.y << (32u - max(n, 1u)), n != 0u), upper);
})"},
    {"divide_u64", R"(
// The quotient and the remainder.
fn divide_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (b.x == 0u && b.y == 0u) { return vec4<u32>(0u, 0u, 0u, 0u); }
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / max(b.x, 1u), 0u, a.x % max(b.x, 1u), 0u); }
  var rest = vec2<u32>(0u, 0u);
  var quotient = vec2<u32>(0u, 0u);
  let minus_b = neg_64(b);
  for (var i = 0u; i < 64u; i++) {
    let bit = 63u - i;
    let word = select(a.x, a.y, bit > 31u);
    let carried = rest.y >> 31u;
    rest = vec2<u32>((rest.x << 1u) | ((word >> (bit & 31u)) & 1u), (rest.y << 1u) | (rest.x >> 31u));
    if (carried != 0u || !lt_u64(rest, b)) {
      rest = add_64(rest, minus_b);
      if (bit > 31u) { quotient.y |= 1u << (bit & 31u); } else { quotient.x |= 1u << (bit & 31u); }
    }
  }
  return vec4<u32>(quotient, rest);
})"},
    {"floor_div_u64", R"(
fn floor_div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return divide_u64(a, b).xy; })"},
    {"mod_u64", R"(
fn mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return divide_u64(a, b).zw; })"},
    {"mod_i64", R"(
fn mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  var rest = divide_u64(abs_64(a), abs_64(b)).zw;
  if (rest.x == 0u && rest.y == 0u) { return rest; }
  if ((a.y >> 31u) != 0u) { rest = neg_64(rest); }
  if (((a.y ^ b.y) >> 31u) != 0u) { rest = add_64(rest, b); }
  return rest;
})"},
    {"floor_div_i64", R"(
fn floor_div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let parts = divide_u64(abs_64(a), abs_64(b));
  if (((a.y ^ b.y) >> 31u) == 0u) { return parts.xy; }
  let lower = select(vec2<u32>(0u, 0u), vec2<u32>(1u, 0u), parts.z != 0u || parts.w != 0u);
  return neg_64(add_64(parts.xy, lower));
})"},
    {"u64_to_f32", R"(
// The low bits that do not fit are folded into one, so that only the conversion rounds.
fn u64_to_f32(a: vec2<u32>) -> f32 {
  if (a.y == 0u) { return f32(a.x); }
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
  if (is_nan(a) || a < 1.0) { return vec2<u32>(0u, 0u); }
  if (a >= 18446744073709551616.0) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
  let bits = bitcast<u32>(a);
  let exponent = (bits >> 23u) - 127u;
  let mantissa = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  if (exponent >= 23u) { return shl_64(mantissa, vec2<u32>(exponent - 23u, 0u)); }
  return vec2<u32>(mantissa.x >> (23u - exponent), 0u);
})"},
    {"f32_to_i64", R"(
fn f32_to_i64(a: f32) -> vec2<u32> {
  if (a >= 9223372036854775808.0) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  if (a <= -9223372036854775808.0) { return vec2<u32>(0u, 0x80000000u); }
  let size = f32_to_u64(abs(a));
  if (a < 0.0) { return neg_64(size); }
  return size;
})"},
    // A position that no i32 holds is outside of every axis, as the nearest i32 is.
    {"i64_to_index", R"(
fn i64_to_index(a: vec2<u32>) -> i32 {
  let fits = bitcast<u32>(bitcast<i32>(a.x) >> 31u) == a.y;
  return select(select(0x7fffffff, -0x7fffffff, (a.y >> 31u) != 0u), bitcast<i32>(a.x), fits);
})"},
    {"u64_to_index", R"(
fn u64_to_index(a: vec2<u32>) -> i32 {
  return select(0x7fffffff, bitcast<i32>(a.x), a.y == 0u && (a.x >> 31u) == 0u);
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
  var bits = shifted + (rebias << 23u);
  if (magnitude < (1u << mantissa)) { bits = bitcast<u32>(f32(magnitude) * unit); }
  if (magnitude >= overflow) { bits = select(0x7fc00000u, shifted | 0x7f800000u, infinity); }
  return bitcast<f32>(bits | sign);
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
  if (magnitude > 0x7f800000u) { return sign | nan; }
  let exponent = magnitude >> 23u;
  var dropped = 23u - mantissa;
  var whole = magnitude - (rebias << 23u);
  if (exponent <= rebias) {
    dropped += rebias + 1u - exponent;
    whole = (magnitude & 0x7fffffu) | 0x800000u;
    if (dropped > 25u || exponent == 0u) { return sign; }
  }
  let odd = (whole >> dropped) & 1u;
  let code = (whole + (1u << (dropped - 1u)) - 1u + odd) >> dropped;
  return sign | min(code, overflow);
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
