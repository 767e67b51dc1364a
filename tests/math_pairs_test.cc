// The functions of two numbers of kernel/body/math_rules.h, pow and atan2, against the C library in
// double: error in ulp over draws with dangers of their own, special values, instructions.
#include <array>
#include <numbers>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "math_functions.h"

using namespace anneal;
using namespace anneal::testing;
using namespace anneal::testing::math_functions;

namespace {

// Draws of bases and exponents, each kind with its own dangers.
using Draw = std::pair<float, float> (*)(std::mt19937_64&);

struct Sample {
  std::string what;
  Draw draw;
};
const Sample kPowers[] = {
    {"anything", [](std::mt19937_64& r) { return std::pair(any_float(r), any_float(r)); }},
    {"results from denormal to overflow",
     [](std::mt19937_64& r) {
       const float base = std::fabs(any_float(r));
       return std::pair(base, exponent_for(base, uniform(r, -152, 130)));
     }},
    {"bases around 1, where logarithms of f32 are too coarse",
     [](std::mt19937_64& r) {
       const float base = static_cast<float>(std::exp2(uniform(r, -0.52, 0.52)));
       return std::pair(base, exponent_for(base, uniform(r, -152, 130)));
     }},
    {"bases next to 1",
     [](std::mt19937_64& r) {
       const float base =
           static_cast<float>(1 + std::copysign(uniform(r, 0, 1e-3), uniform(r, -1, 1)));
       return std::pair(base, exponent_for(base, uniform(r, -152, 130)));
     }},
    {"the largest fraction of a logarithm, the largest results",
     [](std::mt19937_64& r) {
       const float base = static_cast<float>(std::exp2(uniform(r, 0.45, 0.5) * (r() % 2 ? 1 : -1)));
       return std::pair(base, exponent_for(base, uniform(r, 110, 128) * (r() % 2 ? 1 : -1)));
     }},
    {"integer powers of numbers of either sign",
     [](std::mt19937_64& r) {
       return std::pair(static_cast<float>(uniform(r, -8, 8)),
                        static_cast<float>(static_cast<int>(r() % 101) - 50));
     }},
    {"halves of integers",
     [](std::mt19937_64& r) {
       return std::pair(any_float(r), static_cast<float>(static_cast<int>(r() % 65) - 32) / 2);
     }},
};

// Angles of points: any, on circles of any size, and next to where one octant meets another.
const Sample kPoints[] = {
    {"anything", [](std::mt19937_64& r) { return std::pair(any_float(r), any_float(r)); }},
    {"points on circles",
     [](std::mt19937_64& r) {
       const double angle = uniform(r, -4, 4), size = std::exp2(uniform(r, -120, 120));
       return std::pair(static_cast<float>(size * std::sin(angle)),
                        static_cast<float>(size * std::cos(angle)));
     }},
    {"points near diagonals and axes",
     [](std::mt19937_64& r) {
       const double angle = static_cast<double>(r() % 8) * std::numbers::pi / 4 +
                            std::exp2(uniform(r, -30, -3)) * (r() % 2 ? 1 : -1);
       return std::pair(static_cast<float>(std::sin(angle)), static_cast<float>(std::cos(angle)));
     }},
};

Worst sample(Lowered& f, Draw draw, size_t count, double (*exact)(double, double)) {
  Worst worst;
  std::mt19937_64 random(7);
  for (size_t done = 0; done < count; done += kLanes) {
    float *a = f.machine.input(0), *b = f.machine.input(1);
    for (size_t i = 0; i < kLanes; ++i) std::tie(a[i], b[i]) = draw(random);
    const float* out = f.machine.run();
    for (size_t i = 0; i < kLanes; ++i) worst.add(a[i], b[i], out[i], exact(a[i], b[i]));
  }
  return worst;
}

}  // namespace

TEST_CASE("math rules: pow") {
  Lowered pow(Op::Pow);
  const size_t count = (uint64_t{1} << 32) / std::max(1u, stride()) / 16;
  std::string report;
  for (const Sample& kind : kPowers) {
    const Worst worst = sample(pow, kind.draw, count, std::pow);
    INFO("worst at " << worst.a << ", " << worst.b << ": " << worst.got << " instead of "
                     << worst.exact);
    report += fmt::format("\n  pow of {}: at most {:.3f} ulp (at {}, {})", kind.what, worst.ulp,
                          worst.a, worst.b);
    CHECK(worst.ulp <= 1.7);
    CHECK(worst.ulp > 0.49);
  }
  MESSAGE(report);
  CHECK(instructions(pow.root) <= 90);
  CHECK(verify(std::span(&pow.root, 1), kKernelStage) == "");
}

TEST_CASE("math rules: atan2") {
  Lowered atan2(Op::Atan2);
  const size_t count = (uint64_t{1} << 32) / std::max(1u, stride()) / 16;
  std::string report;
  for (const Sample& kind : kPoints) {
    const Worst worst = sample(atan2, kind.draw, count, std::atan2);
    INFO("worst at " << worst.a << ", " << worst.b << ": " << worst.got << " instead of "
                     << worst.exact);
    report += fmt::format("\n  atan2 of {}: at most {:.3f} ulp (at {}, {})", kind.what, worst.ulp,
                          worst.a, worst.b);
    CHECK(worst.ulp <= 1.6);
    CHECK(worst.ulp > 0.49);
  }
  MESSAGE(report);
  CHECK(instructions(atan2.root) <= 34);
  CHECK(verify(std::span(&atan2.root, 1), kKernelStage) == "");
  const float specials[] = {0,     -0.0f,  1,     -1,     kInfinity, -kInfinity, kNan,
                            kTiny, -kTiny, kHuge, -kHuge, 0.5f,      -1e-30f,    0x1p-126f};
  for (float y : specials) {
    for (float x : specials) {
      CAPTURE(y);
      CAPTURE(x);
      CHECK(error_in_ulp(atan2(y, x), std::atan2(double(y), double(x))) <= 1);
    }
  }
}

TEST_CASE("math rules: pow of special values") {
  // clang-format off
  const float specials[] = {
      0, -0.0f, 1, -1, 2, -2, 3, -3, 4, -4, 0.5f, -0.5f, 1.5f, -1.5f, 2.5f, -2.5f,
      kInfinity, -kInfinity, kNan, kTiny, -kTiny, 0x1p-126f, -0x1p-126f, kHuge, -kHuge,
      0x1.fffffep-1f, -0x1.fffffep-1f, 0x1.000002p+0f, -0x1.000002p+0f,  // next to 1
      16777215, -16777215, 16777216, 4194303.5f, -4194303.5f, 8388609,   // the last odd, the last half
      1e30f, -1e30f, 1e-30f, -1e-30f, 127, 128, -126, -149, -150};
  // clang-format on
  Lowered pow(Op::Pow);
  for (float a : specials) {
    for (float b : specials) {
      const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
      CAPTURE(a);
      CAPTURE(b);
      CHECK(error_in_ulp(pow(a, b), exact) < 0.75);
    }
  }
  // Some of them by hand, since the C library might be wrong.
  const std::array<float, 3> rows[] = {
      {kNan, 0, 1},
      {1, kNan, 1},
      {-1, kNan, kNan},
      {-1, kInfinity, 1},
      {-1, -kInfinity, 1},
      {0, -1, kInfinity},
      {-0.0f, -1, -kInfinity},
      {-0.0f, -2, kInfinity},
      {-0.0f, 3, -0.0f},
      {-0.0f, 2, 0},
      {-0.0f, 0.5f, 0},
      {-8, 3, -512},
      {-8, 2, 64},
      {-8, 0.5f, kNan},
      {-kInfinity, 3, -kInfinity},
      {-kInfinity, 0.5f, kInfinity},
      {-kInfinity, -3, -0.0f},
      {0.5f, kInfinity, 0},
      {0.5f, -kInfinity, kInfinity},
      {2, -149, kTiny},
      {2, 128, kInfinity},
  };
  for (const auto& [a, b, result] : rows) {
    CAPTURE(a);
    CAPTURE(b);
    CHECK(same(pow(a, b), result));
  }
}

TEST_CASE("math rules: powers that need no logarithm") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef a = make_buffer("a", 0, DType::F32, {});
  const float inputs[] = {0,         -0.0f,      1,      -1,    2.5f,  -2.5f,
                          1e-20f,    -1e-20f,    1e-14f, 1e13f, 1e20f, kTiny,
                          kInfinity, -kInfinity, kNan,   kHuge, 3,     0.1f};
  for (double power : {2.0, 3.0, -1.0, 0.5}) {
    NodeRef node = make(Op::Pow, {a, make_const_like(a, power)});
    RewriteLog log;
    NodeRef root = lower_math(std::span(&node, 1), &log)[0];
    CHECK(instructions(root) <= 4);
    CHECK(log.hits().size() == 1);
    VectorMachine machine(root, {a});
    for (float in : inputs) {
      machine.input(0)[0] = in;
      CAPTURE(power);
      CAPTURE(in);
      CHECK(error_in_ulp(machine.run()[0], std::pow(double(in), power)) <= 1);
    }
  }
}
