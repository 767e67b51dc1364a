// Convolutions as Winograd computes them: close to the definition, in every derivative.
#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "codegen/target_kernels.h"

using namespace anneal;

namespace {

constexpr double kUlp = 0x1p-23;
// In ulps of the largest sum of |x| |w| in the same tile: what Winograd's sums may be off by, and
// what those of the definition may, both in f32.
constexpr double kWinograd = 8, kDefinition = 3;

struct Setup {
  int64_t images, channels, outputs, height, width, rows, columns;  // the last two: padding

  ConvOptions options(bool winograd) const {
    return {.padding = {rows, columns}, .winograd = winograd};
  }
};

const Setup kSetups[] = {
    {3, 16, 16, 12, 12, 1, 1}, {2, 32, 16, 9, 14, 1, 1}, {4, 16, 48, 8, 10, 0, 0},
    {9, 64, 32, 7, 7, 2, 2},   {8, 17, 33, 6, 11, 0, 2}, {40, 128, 16, 3, 4, 1, 1},
};

Tensor exact(const Tensor& x) { return x.cast(DType::F64).realize(); }

// The value and both gradients.
std::vector<Tensor> results(const Tensor& x, const Tensor& w, const Tensor& seed,
                            const ConvOptions& options) {
  Tensor y = conv2d(x, w, {}, options);
  std::vector<Tensor> all = grad(y, {x, w}, {.seed = seed});
  all.insert(all.begin(), y);
  return all;
}

double largest(const Tensor& x) { return max(abs(x)).item(); }

std::vector<NodeRef> simplified(const Tensor& tensor, const Capabilities& capabilities = {}) {
  return simplified_for(std::vector<NodeRef>{tensor.node()}, capabilities);
}

}  // namespace

TEST_CASE("winograd: values and gradients are as close as stated") {
  Generator random(3);
  for (const Setup& s : kSetups) {
    CAPTURE(s.channels);
    Tensor x = random.normal({s.images, s.channels, s.height, s.width}).realize();
    Tensor w = random.normal({s.outputs, s.channels, 3, 3}).realize();
    Tensor seed = random.normal(conv2d(x, w, {}, s.options(false)).shape()).realize();
    const std::vector<Tensor> quick = results(x, w, seed, s.options(true));
    const std::vector<Tensor> plain = results(x, w, seed, s.options(false));
    std::vector<Tensor> wanted, sums;
    {
      DeviceScope interpreter("interpreter");
      wanted = evaluate(results(exact(x), exact(w), exact(seed), s.options(true)));
    }
    sums = results(exact(abs(x)), exact(abs(w)), exact(abs(seed)), s.options(true));
    for (size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      REQUIRE(to_text(quick[i].shape()) == to_text(wanted[i].shape()));
      CHECK(quick[i].node() != plain[i].node());
      // Tiles of images are 4x4, of weights 3x3.
      Tensor around = i == 2 ? max(sums[i], {2, 3}, true)
                             : max_pool(sums[i], {7, 7}, {.stride = {1}, .padding = {3}});
      auto error = [&](const Tensor& result) {
        return largest((result.cast(DType::F64) - wanted[i]) / around) / kUlp;
      };
      CHECK(error(quick[i]) <= kWinograd);
      CHECK(error(plain[i]) <= kDefinition);
    }
  }
}

TEST_CASE("winograd: a transposed convolution is the adjoint") {
  Generator random(4);
  Tensor y = random.normal({6, 16, 7, 8}).realize(), w = random.normal({16, 24, 3, 3}).realize();
  const ConvOptions quick{.padding = {1, 2}}, plain{.padding = {1, 2}, .winograd = false};
  Tensor x = conv_transpose2d(y, w, {}, quick), wanted = conv_transpose2d(y, w, {}, plain);
  REQUIRE(x.node() != wanted.node());
  CHECK(largest(x - wanted) <= 1e-5 * largest(wanted));
  Tensor seed = random.normal(x.shape()).realize();
  const std::vector<Tensor> parts = grad(x, {y, w}, {.seed = seed});
  const std::vector<Tensor> others = grad(wanted, {y, w}, {.seed = seed});
  for (size_t i = 0; i < 2; ++i) CHECK(largest(parts[i] - others[i]) <= 1e-5 * largest(others[i]));
}

TEST_CASE("winograd: gradients of gradients, and forward mode") {
  Generator random(5);
  Tensor x = random.normal({4, 16, 8, 8}).realize(), w = random.normal({16, 16, 3, 3}).realize();
  Tensor along_x = random.normal(x.shape()).realize(), along_w = random.normal(w.shape()).realize();
  auto second = [&](bool winograd) {
    Tensor y = conv2d(x, w, {}, {.padding = {1}, .winograd = winograd});
    std::vector<Tensor> first = grad(sum(square(y) * y), {x, w});
    std::vector<Tensor> all = grad(sum(first[0] * along_x) + sum(first[1] * along_w), {x, w});
    for (const Tensor& forward : jvp({y, first[0], first[1]}, {x, w}, {along_x, along_w}))
      all.push_back(forward);
    return all;
  };
  const std::vector<Tensor> quick = second(true), plain = second(false);
  REQUIRE(quick.size() == 5);
  for (size_t i = 0; i < quick.size(); ++i) {
    CAPTURE(i);
    CHECK(quick[i].node() != plain[i].node());
    CHECK(largest(quick[i] - plain[i]) <= 1e-4 * largest(plain[i]));
  }
}

// What rounds otherwise is computed otherwise: programs that run must come by the choice, too.
TEST_CASE("winograd: what runs is computed so, in values and every gradient") {
  Generator random(8);
  Tensor x = random.normal({4, 16, 10, 10}).realize(), w = random.normal({16, 16, 3, 3}).realize();
  Tensor seed = random.normal({4, 16, 10, 10}).realize();
  const std::vector<Tensor> quick = results(x, w, seed, {.padding = {1}});
  const std::vector<Tensor> plain = results(x, w, seed, {.padding = {1}, .winograd = false});
  for (size_t i = 0; i < quick.size(); ++i) {
    CAPTURE(i);
    CHECK(largest(quick[i] - plain[i]) > 0);
  }
  Tensor transposed = conv_transpose2d(x, w, {}, {.padding = {1}});
  CHECK(largest(transposed - conv_transpose2d(x, w, {}, {.padding = {1}, .winograd = false})) > 0);
  auto step =
      compile([&](const Tensor& image) { return results(image, w, seed, {.padding = {1}}); });
  step(x);
  for (const char* rule : {"winograd", "conv-transpose", "conv-weights"})
    CHECK(step.explain().find(rule) != std::string::npos);
}

TEST_CASE("winograd: a symbolic batch") {
  Variable n("n", 1, 64);
  Generator random(6);
  Tensor x = input("x", {n, 16, 10, 10}), w = random.normal({32, 16, 3, 3}).realize();
  Tensor quick = conv2d(x, w, {}, {.padding = {1}});
  Tensor plain = conv2d(x, w, {}, {.padding = {1}, .winograd = false});
  REQUIRE(quick.node() != plain.node());
  Tensor off = max(abs(quick - plain)), most = max(abs(plain));
  for (int64_t images : {1, 3, 20}) {
    const Bindings bindings{.sizes = {{n, images}},
                            .inputs = {{x, random.normal({images, 16, 10, 10})}}};
    CHECK(off.item(bindings) <= 1e-5 * most.item(bindings));
    CHECK(off.item(bindings) > 0);
  }
}

TEST_CASE("winograd: only where it is likely to be faster") {
  struct Row {
    Sizes x, w;
    ConvOptions options;
    bool used;
  };
  const Row rows[] = {
      {{4, 16, 8, 8}, {16, 16, 3, 3}, {.padding = {1}}, true},
      {{4, 16, 8, 8}, {16, 16, 3, 3}, {.padding = {1}, .winograd = false}, false},
      {{4, 8, 8, 8}, {16, 8, 3, 3}, {.padding = {1}}, false},
      {{4, 16, 8, 8}, {8, 16, 3, 3}, {.padding = {1}}, false},
      {{3, 16, 8, 8}, {16, 16, 3, 3}, {.padding = {1}}, false},
      {{4, 16, 8, 8}, {16, 16, 3, 3}, {.padding = {3}}, false},
      {{4, 16, 8, 8}, {16, 16, 3, 3}, {.stride = {2}, .padding = {1}}, false},
      {{4, 16, 8, 8}, {16, 16, 3, 3}, {.padding = {1}, .dilation = {2}}, false},
      {{4, 32, 8, 8}, {16, 16, 3, 3}, {.padding = {1}, .groups = 2}, false},
      {{4, 16, 8, 8}, {16, 16, 3, 1}, {.padding = {1}}, false},
      {{40, 16, 5, 5}, {16, 16, 3, 3}, {.padding = {1}}, false},
      {{40, 16, 1, 1}, {16, 16, 3, 3}, {.padding = {1}}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    Tensor x = input("x", row.x), w = input("w", row.w);
    const Schedule ours = schedule_program(simplified(conv2d(x, w, {}, row.options)));
    CHECK((ours.kernels.size() == 5) == row.used);
    Tensor halves = conv2d(x.cast(DType::F16), w.cast(DType::F16), {}, row.options);
    CHECK(schedule_program(simplified(halves)).kernels.size() <= 2);
  }
}

TEST_CASE("winograd: the target decides, for values and for every gradient") {
  Tensor x = input("x", {4, 16, 8, 8}), w = input("w", {16, 16, 3, 3});
  Tensor y = conv2d(x, w, {}, {.padding = {1}});
  std::vector<Tensor> marked = grad(sum(y * y), {x, w});
  for (const Tensor& tangent : jvp({y}, {x, w}, {x, w})) marked.push_back(tangent);
  marked.push_back(y);
  Capabilities never;
  never.winograd_channels = 17;
  std::vector<Tensor> plain;
  {
    const ConvOptions options{.padding = {1}, .winograd = false};
    Tensor z = conv2d(x, w, {}, options);
    plain = grad(sum(z * z), {x, w});
    for (const Tensor& tangent : jvp({z}, {x, w}, {x, w})) plain.push_back(tangent);
    plain.push_back(z);
  }
  for (size_t i = 0; i < marked.size(); ++i) {
    CAPTURE(i);
    CHECK(simplified(marked[i], never) == simplified(plain[i], never));
    CHECK(simplified(marked[i]) != simplified(plain[i]));
    CHECK(simplified(plain[i]) == simplified(plain[i], never));
  }
}

TEST_CASE("winograd: results do not depend on the number of threads") {
  Generator random(7);
  Tensor x = random.normal({8, 32, 16, 16}).realize(), w = random.normal({32, 32, 3, 3}).realize();
  Tensor y = conv2d(x, w, {}, {.padding = {1}});
  const int before = threads();
  set_threads(1);
  const std::vector<float> wanted = y.to_vector();
  for (int count : {2, 5}) {
    set_threads(count);
    CHECK(y.to_vector() == wanted);
  }
  set_threads(before);
}
