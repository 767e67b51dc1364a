// Random numbers: threefry of (draw, element) under the seed, and formulas over its bits.
#include <numbers>

#include <fmt/format.h>

#include <anneal/random.h>

#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

constexpr double kTwoToMinus24 = 1.0 / (1 << 24), kTwoToMinus32 = 1.0 / 4294967296.0;

void check_float(DType dtype) {
  if (!is_float(dtype))
    fail(fmt::format("{} cannot hold fractions", name(dtype)), "use integers() for whole numbers");
}

// In [0, 1): 24 bits of each word, so that every value is exact in f32 and 1 is never reached.
Tensor unit(const Tensor& bits) { return cast(bits >> 8, DType::F64) * kTwoToMinus24; }

}  // namespace

Tensor Generator::bits(const Sizes& sizes, Location where) {
  CallScope call("random bits", where);
  std::vector<NodeRef> dims = nodes_of(sizes);
  NodeRef count = simplify(element_count_expr(dims));
  if (bounds(count).max > int64_t{1} << 32)
    fail(fmt::format("{} random numbers in one draw, at most 2^32", to_text(count)),
         "draw in parts");
  Tensor element = wrap(make_iota(DType::U32, std::span(&count, 1), 0));
  auto word = [&](uint64_t value) {
    return make_const(Scalar::of_int(DType::U32, static_cast<int64_t>(value & 0xffffffffu)),
                      std::span(&count, 1));
  };
  uint64_t draw = draw_++;
  // The draw's high half is folded into the key: counters hold the element and the draw's low half.
  NodeRef drawn = make(
      Op::Threefry, {element.node(), word(draw), word(seed_), word((seed_ >> 32) ^ (draw >> 32))});
  return reshape(wrap(drawn), sizes);
}

Tensor Generator::uniform(const Sizes& sizes, double low, double high, DType dtype,
                          Location where) {
  CallScope call("uniform", where);
  check_float(dtype);
  if (!(low <= high))
    fail(fmt::format("the bounds are {} and {}", low, high), "the lower bound comes first");
  return cast(unit(bits(sizes, where)) * (high - low) + low, dtype);
}

// Box and Muller: two uniforms make one normal, by sqrt(-2 ln u) cos(2 pi v).
Tensor Generator::normal(const Sizes& sizes, double mean, double deviation, DType dtype,
                         Location where) {
  CallScope call("normal", where);
  check_float(dtype);
  Tensor u = 1.0 - unit(bits(sizes, where));  // in (0, 1], where the logarithm is finite
  Tensor v = unit(bits(sizes, where));
  Tensor z = sqrt(-2.0 * log(u)) * cos(v * (2 * std::numbers::pi));
  return cast(z * deviation + mean, dtype);
}

Tensor Generator::integers(const Sizes& sizes, int64_t low, int64_t high, DType dtype,
                           Location where) {
  CallScope call("integers", where);
  if (low >= high || high - low > int64_t{1} << 32)
    fail(fmt::format("no integers from {} up to {}", low, high),
         "the range holds 1 to 2^32 numbers");
  // Scaling spreads 2^32 words over the range; a range of n is off by at most n / 2^32.
  Tensor scaled = floor(cast(bits(sizes, where), DType::F64) *
                        (kTwoToMinus32 * static_cast<double>(high - low)));
  return cast(cast(scaled, DType::I64) + low, dtype);
}

namespace {
thread_local Generator t_generator;
}

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
