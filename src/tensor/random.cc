// Random numbers: threefry of (draw, element) under the seed, and formulas over its bits.
#include <array>
#include <numbers>

#include <fmt/format.h>

#include <anneal/random.h>

#include "base/checked.h"
#include "ir/semantics.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "tensor/movement.h"
#include "tensor/number_checks.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

constexpr double kTwoToMinus24 = 1.0 / (1 << 24);

void check_float(DType dtype) {
  check_storable(dtype);
  if (!is_float(dtype))
    fail(fmt::format("{} cannot hold fractions", name(dtype)), "use integers() for whole numbers");
}

void check_bounds(double low, double high) {
  check_finite("the lower bound", low);
  check_finite("the upper bound", high);
  if (low > high)
    fail(fmt::format("the bounds are {} and {}", low, high), "the lower bound comes first");
}

void check_shape(double mean, double deviation) {
  check_finite("the mean", mean);
  check_not_negative("the deviation", deviation);
}

// In [0, 1): 24 bits of each word, so that every value is exact in f32 and 1 is never reached.
Tensor unit(const Tensor& bits, DType dtype) {
  return cast(bits >> 8, wide_dtype(dtype)) * kTwoToMinus24;
}

Tensor uniform_of(const Tensor& bits, double low, double high, DType dtype) {
  return cast(unit(bits, dtype) * (high - low) + low, dtype);
}

// Box and Muller: two uniforms make one normal, by sqrt(-2 ln u) cos(2 pi v).
Tensor normal_of(const Tensor& first, const Tensor& second, double mean, double deviation,
                 DType dtype) {
  Tensor u = 1.0 - unit(first, dtype);  // in (0, 1], where the logarithm is finite
  Tensor z = sqrt(-2.0 * log(u)) * cos(unit(second, dtype) * (2 * std::numbers::pi));
  return cast(z * deviation + mean, dtype);
}

// One word an element: threefry of (element, draw) under the seed. The scalars are u32.
Tensor bits_of(const Sizes& sizes, NodeRef draw, NodeRef seed_low, NodeRef seed_high) {
  std::vector<NodeRef> dims = nodes_of(sizes);
  NodeRef count = simplify(element_count_expr(dims));
  if (bounds(count).max > int64_t{1} << 32)
    fail(fmt::format("{} random numbers in one draw, at most 2^32", to_text(count)),
         "draw in parts");
  const std::span line(&count, 1);
  NodeRef element = make_iota(DType::U32, line, 0);
  NodeRef drawn = make(Op::Threefry, {element, broadcast_to(draw, line),
                                      broadcast_to(seed_low, line), broadcast_to(seed_high, line)});
  return reshape(wrap(drawn), sizes);
}

uint32_t low_word(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high_word(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// The draw's high half is folded into the seed: counters hold the element and the draw's low half.
uint32_t seed_high(uint64_t seed, uint64_t draw) { return high_word(seed) ^ high_word(draw); }

// A draw of a generator.
Tensor drawn_bits(const Sizes& sizes, uint64_t seed, uint64_t draw) {
  auto word = [](uint32_t value) { return make_const(Scalar::of_int(DType::U32, value)); };
  return bits_of(sizes, word(low_word(draw)), word(low_word(seed)), word(seed_high(seed, draw)));
}

Tensor as_new(const Tensor& x) { return wrap_new(node_of(x)); }

NodeRef word_of(const Tensor& key, int64_t i) {
  std::array begin_end{index_const(i), index_const(i + 1)};
  return reshape_node(shrink_node(node_of(key), begin_end), {});
}

void check_key(const Tensor& key) {
  NodeRef node = node_of(key);
  if (node->dtype != DType::U32 || node->rank() != 1 || !is_number(node->dim(0), 3))
    fail(fmt::format("the key is {}, not u32[3]", type_text(node)),
         "take it from Generator::key()");
}

}  // namespace

Tensor random_bits(const Sizes& sizes, const Tensor& key, Location where) {
  CallScope call("random_bits", where);
  check_key(key);
  return bits_of(sizes, word_of(key, 2), word_of(key, 0), word_of(key, 1));
}

Tensor random_uniform(const Sizes& sizes, const Tensor& key, double low, double high, DType dtype,
                      Location where) {
  CallScope call("random_uniform", where);
  check_float(dtype);
  check_bounds(low, high);
  return uniform_of(random_bits(sizes, key), low, high, dtype);
}

Tensor random_normal(const Sizes& sizes, const Tensor& key, double mean, double deviation,
                     DType dtype, Location where) {
  CallScope call("random_normal", where);
  check_float(dtype);
  check_shape(mean, deviation);
  check_key(key);
  NodeRef draw = word_of(key, 2), low = word_of(key, 0), high = word_of(key, 1);
  return normal_of(bits_of(sizes, draw, low, high),
                   bits_of(sizes, node_of(wrap(draw) + 1), low, high), mean, deviation, dtype);
}

Tensor Generator::bits(const Sizes& sizes, Location where) {
  CallScope call("random bits", where);
  return as_new(drawn_bits(sizes, seed_, draw_++));
}

Tensor Generator::uniform(const Sizes& sizes, double low, double high, DType dtype,
                          Location where) {
  CallScope call("uniform", where);
  check_float(dtype);
  check_bounds(low, high);
  return as_new(uniform_of(drawn_bits(sizes, seed_, draw_++), low, high, dtype));
}

Tensor Generator::normal(const Sizes& sizes, double mean, double deviation, DType dtype,
                         Location where) {
  CallScope call("normal", where);
  check_float(dtype);
  check_shape(mean, deviation);
  Tensor first = drawn_bits(sizes, seed_, draw_++);
  return as_new(normal_of(first, drawn_bits(sizes, seed_, draw_++), mean, deviation, dtype));
}

Tensor Generator::integers(const Sizes& sizes, int64_t low, int64_t high, DType dtype,
                           Location where) {
  CallScope call("integers", where);
  check_storable(dtype);
  const std::optional<int64_t> count = checked_sub(high, low);
  if (low >= high || !count || *count > int64_t{1} << 32)
    fail(fmt::format("no integers from {} up to {}", low, high),
         "the range holds 1 to 2^32 numbers");
  scalar_of(low, dtype);
  scalar_of(high - 1, dtype);
  // Scaling spreads 2^32 words over the range; a range of n is off by at most n / 2^32.
  Tensor scaled = (cast(drawn_bits(sizes, seed_, draw_++), DType::U64) * *count) >> 32;
  return as_new(cast(cast(scaled, DType::I64) + low, dtype));
}

Tensor Generator::key(Location where) {
  uint64_t draw = draw_++;
  return tensor<uint32_t>({low_word(seed_), seed_high(seed_, draw), low_word(draw)}, where);
}

Generator Generator::split() {
  uint64_t draw = draw_++;
  // Under the inverted key, so that a stream's own draws say nothing about those split from it.
  auto word = [&](uint32_t element) {
    return threefry(element, low_word(draw), low_word(seed_), ~seed_high(seed_, draw));
  };
  return Generator(word(0) | uint64_t{word(1)} << 32);
}

namespace {
thread_local Generator t_generator;
}

Generator& generator() { return t_generator; }
void seed(uint64_t value) { t_generator = Generator(value); }
Tensor rand(const Sizes& sizes, DType dtype, Location where) {
  return t_generator.uniform(sizes, 0, 1, dtype, where);
}
Tensor randn(const Sizes& sizes, DType dtype, Location where) {
  return t_generator.normal(sizes, 0, 1, dtype, where);
}
Tensor uniform(const Sizes& sizes, double low, double high, DType dtype, Location where) {
  return t_generator.uniform(sizes, low, high, dtype, where);
}
Tensor randint(const Sizes& sizes, int64_t low, int64_t high, DType dtype, Location where) {
  return t_generator.integers(sizes, low, high, dtype, where);
}

}  // namespace anneal
