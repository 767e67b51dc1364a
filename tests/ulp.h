// How far results of f32 are from exact ones, for tests that try a good part of all f32.
// ANNEAL_MATH_STRIDE=1 tries every one (minutes); the default is a stride through all of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "vector_machine.h"

namespace anneal::testing {

// In units of the last place of the f32 nearest to what is exact. Infinite where the result is of
// another kind: a NaN, an infinity that is no overflow by a hair, a zero of the other sign.
inline double error_in_ulp(float got, double exact) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kFar;
  if (got == exact) return got == 0 && std::signbit(got) != std::signbit(exact) ? kFar : 0.0;
  if (std::isnan(got) || std::isinf(exact)) return kFar;
  if (got == 0 && std::signbit(got) != std::signbit(exact)) return kFar;
  int exponent;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1, std::clamp(exponent - 24, -149, 104));
  if (std::isinf(got) && std::fabs(exact) >= 0x1p128) return 0;
  const double reached = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  return std::fabs(reached - exact) / ulp;
}

struct Worst {
  double ulp = 0;
  float a = 0, b = 0, got = 0;
  double exact = 0;

  void add(float at_a, float at_b, float result, double expected) {
    const double error = error_in_ulp(result, expected);
    if (error > ulp) *this = {error, at_a, at_b, result, expected};
  }
};

inline uint32_t stride() {
  const char* text = std::getenv("ANNEAL_MATH_STRIDE");
  return text ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : 1021;  // a prime
}

inline Worst sweep(VectorMachine& machine, double (*exact)(double)) {
  Worst worst;
  const uint64_t step = std::max(1u, stride());
  for (uint64_t begin = 0; begin < uint64_t{1} << 32; begin += kLanes * step) {
    float* in = machine.input(0);
    for (size_t i = 0; i < kLanes; ++i)
      in[i] = std::bit_cast<float>(static_cast<uint32_t>(begin + i * step));
    const float* out = machine.run();
    for (size_t i = 0; i < kLanes; ++i) worst.add(in[i], 0, out[i], exact(in[i]));
  }
  return worst;
}

}  // namespace anneal::testing
