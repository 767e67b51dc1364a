// Activations, norms, pools and losses beside the table of op cases: symbolic sizes against static
// ones, and extreme values. Single results of single ops belong to op_cases_*.cc.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>
#include <anneal/device.h>

#include "naive_array.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double value_at(Tensor (*function)(const Operand&), double x) {
  return function(tensor({x})).item();
}
double slope_at(const std::function<Tensor(const Tensor&)>& function, double x) {
  Tensor place = tensor({x});
  return grad(sum(function(place)), {place})[0].item();
}
double bend_at(const std::function<Tensor(const Tensor&)>& function, double x) {
  Tensor place = tensor({x});
  Tensor first = grad(sum(function(place)), {place})[0];
  return grad(sum(first), {place})[0].item();
}

// ---- symbolic sizes

struct SymbolicCase {
  std::string name;
  std::function<Sizes(const Dim& n)> shape;
  std::function<Tensor(const Tensor& x)> build;
};

Sizes batch(const Dim& n) { return Sizes{n, 4, 6}; }
Sizes channels(const Dim& n) { return Sizes{2, n, 6}; }
Sizes sequence(const Dim& n) { return Sizes{2, 4, n}; }
Sizes image(const Dim& n) { return Sizes{2, 2, n * 2, n + 3}; }
Sizes square(const Dim& n) { return Sizes{n, n}; }
Tensor w() { return constant({2, 4, 3}); }
const SymbolicCase kSymbolicCases[] = {
    {"matmul rows", sequence,
     [](const Tensor& x) { return matmul(transpose(x), constant({4, 3})); }},
    {"matmul inner", sequence, [](const Tensor& x) { return matmul(x, transpose(x)); }},
    {"attention", sequence,
     [](const Tensor& x) { return matmul(softmax(matmul(transpose(x), x)), transpose(x)); }},
    {"dot", [](const Dim& n) { return Sizes{n}; }, [](const Tensor& x) { return dot(x, x); }},
    {"outer", [](const Dim& n) { return Sizes{n * 2}; },
     [](const Tensor& x) { return outer(x, x); }},
    {"einsum", sequence, [](const Tensor& x) { return einsum("bcn,bdn,...n->...cd", {x, x, x}); }},
    {"einsum diagonal", square, [](const Tensor& x) { return einsum("ii->i", {x}); }},
    {"layer_norm batch", batch, [](const Tensor& x) { return layer_norm(x, 2); }},
    {"layer_norm inner", sequence, [](const Tensor& x) { return layer_norm(x, 1); }},
    {"group_norm space", sequence, [](const Tensor& x) { return group_norm(x, 2); }},
    {"group_norm channels", [](const Dim& n) { return Sizes{2, n * 2, 3}; },
     [](const Tensor& x) { return group_norm(x, 2); }},
    {"batch_norm", batch, [](const Tensor& x) { return batch_norm(x, constant({4})); }},
    {"batch_norm channels", channels, [](const Tensor& x) { return batch_norm(x); }},
    {"conv batch", batch, [](const Tensor& x) { return conv1d(x, w()); }},
    {"conv sequence", sequence, [](const Tensor& x) { return conv1d(x, w(), constant({2})); }},
    {"conv stride", sequence,
     [](const Tensor& x) { return conv1d(x, w(), {}, {.stride = {2}, .padding = {1}}); }},
    {"conv patches", sequence,
     [](const Tensor& x) { return conv1d(x, w(), {}, {.stride = {3}, .padding = {1}}); }},
    {"conv far apart", sequence,
     [](const Tensor& x) { return conv1d(x, w(), {}, {.stride = {5}, .padding = {2}}); }},
    {"conv dilation", sequence,
     [](const Tensor& x) {
       return conv1d(x, w(), {}, {.stride = {2}, .padding = {1}, .dilation = {2}});
     }},
    {"conv channels", channels,
     [](const Tensor& x) { return conv1d(x, ones({3, x.dim(1), 2}, DType::F64)); }},
    {"depthwise", sequence,
     [](const Tensor& x) { return conv1d(x, constant({4, 1, 3}), {}, {.groups = 4}); }},
    {"conv image", image,
     [](const Tensor& x) { return conv2d(x, constant({3, 2, 3, 2}), {}, {.stride = {2, 1}}); }},
    {"conv_transpose", sequence,
     [](const Tensor& x) {
       return conv_transpose1d(x, constant({4, 2, 3}), {},
                               {.stride = {2}, .padding = {1}, .output_padding = {1}});
     }},
    {"max_pool", sequence, [](const Tensor& x) { return max_pool(x, {2}, {.padding = {1}}); }},
    {"max_pool image", image,
     [](const Tensor& x) { return max_pool(x, {3, 2}, {.stride = {1, 2}, .padding = {1}}); }},
    {"avg_pool", sequence,
     [](const Tensor& x) {
       return avg_pool(x, {3}, {.stride = {2}, .padding = {1}, .count_padding = false});
     }},
    {"adaptive even", image, [](const Tensor& x) { return adaptive_avg_pool(x, {2, 1}); }},
    {"adaptive uneven", image, [](const Tensor& x) { return adaptive_avg_pool(x, {3, 4}); }},
    {"adaptive_max_pool", sequence, [](const Tensor& x) { return adaptive_max_pool(x, {3}); }},
    {"unfold", image, [](const Tensor& x) { return unfold(x, {2, 2}, {.stride = {2}}); }},
    {"softmax", sequence, [](const Tensor& x) { return softmax(x); }},
    {"cross_entropy batch", [](const Dim& n) { return Sizes{n, 3}; },
     [](const Tensor& x) { return cross_entropy(x, argmax(x, 1), Reduction::Mean, 0.1, 1); }},
    {"cross_entropy classes", [](const Dim& n) { return Sizes{4, n}; },
     [](const Tensor& x) { return cross_entropy(x, argmin(x, 1), Reduction::Mean, 0.1); }},
    {"bce", batch, [](const Tensor& x) { return bce_with_logits(x, x); }},
};

}  // namespace

TEST_CASE("tensor: symbolic sizes give what static ones give") {
  // Code for one size may sum in another order than code for all sizes.
  auto same = [](const Tensor& got, const Tensor& want) {
    const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
    if (device_name() == "interpreter") return a == b;
    return std::ranges::equal(a, b, [](double x, double y) {
      return std::fabs(x - y) <= 1e-12 * std::max(1.0, std::fabs(y));
    });
  };
  Variable n("n", 3, 12);
  auto check = [&](const SymbolicCase& row) {
    CAPTURE(row.name);
    Tensor x = input("x", row.shape(n), DType::F64);
    Tensor y = row.build(x);
    Tensor slope = grad(sum(y * y), {x})[0];
    for (int64_t size : {3, 4, 7, 12}) {
      CAPTURE(size);
      std::mt19937 random = random_numbers(static_cast<unsigned>(size));
      std::vector<int64_t> shape;
      for (const Dim& dim : row.shape(size)) shape.push_back(dim.value());
      Tensor data = tensor_of(random_array(shape, random));
      Tensor plain = row.build(data);
      Bindings bindings{.sizes = {{n, size}}, .inputs = {{x, data}}};
      std::vector<Tensor> got = evaluate({y, slope}, bindings);
      CHECK(to_text(got[0].shape()) == to_text(plain.shape()));
      CHECK(same(got[0], plain));
      CHECK(same(got[1], grad(sum(plain * plain), {data})[0]));
    }
  };
  for (const std::string& device : {device_name(), std::string("interpreter")}) {
    DeviceScope scope(device);
    CAPTURE(device);
    for (const SymbolicCase& row : kSymbolicCases) check(row);
  }
}

// ---- extreme values

TEST_CASE("tensor: softmax, logsumexp and losses of far values") {
  Tensor x = tensor({1e4, -1e4, 0.0});
  expect_same(
      softmax(x),
      [] {
        NaiveArray a({3});
        a.data = {1, 0, 0};
        return a;
      }(),
      0);
  expect_same(
      log_softmax(x),
      [] {
        NaiveArray a({3});
        a.data = {0, -2e4, -1e4};
        return a;
      }(),
      0);
  CHECK(logsumexp(x).item() == 1e4);
  CHECK(logsumexp(tensor({-1e4, -1e4})).item() == doctest::Approx(-1e4 + std::log(2.0)));
  for (double value : grad(sum(square(softmax(x))), {x})[0].to_vector<double>()) CHECK(value == 0);
  Tensor losses = cross_entropy(reshape(x, {1, 3}), tensor({1}), Reduction::None);
  CHECK(losses.item() == 2e4);

  struct Row {
    double logit, target, loss, slope;
  };
  const Row rows[] = {{1e4, 1, 0, 0},
                      {1e4, 0, 1e4, 1},
                      {-1e4, 0, 0, 0},
                      {-1e4, 1, 1e4, -1},
                      {0, 0.5, std::log(2.0), 0},
                      {0, 1, std::log(2.0), -0.5},
                      {40, 1, std::log1p(std::exp(-40.0)), -1 / (1 + std::exp(40.0))},
                      {-40, 0, std::log1p(std::exp(-40.0)), 1 / (1 + std::exp(40.0))}};
  for (const Row& row : rows) {
    CAPTURE(row.logit);
    CAPTURE(row.target);
    auto loss = [&](const Tensor& logit) { return bce_with_logits(logit, row.target); };
    CHECK(loss(tensor({row.logit})).item() == doctest::Approx(row.loss).epsilon(1e-14));
    CHECK(slope_at(loss, row.logit) == doctest::Approx(row.slope).epsilon(1e-14));
  }
}

TEST_CASE("tensor: activations are finite, pass NaN, and have gradients at the kinks") {
  struct Row {
    std::string name;
    Tensor (*function)(const Operand&);
    double slope_at_0;
    bool grows;  // f(x) = x for a large x, and 0 or a small constant for a low one
  };
  const Row rows[] = {
      {"relu", relu, 0, true},
      {"leaky_relu", [](const Operand& x) { return leaky_relu(x); }, 0.01, true},
      {"elu", [](const Operand& x) { return elu(x); }, 1, true},
      {"gelu", gelu, 0.5, true},
      {"gelu_tanh", gelu_tanh, 0.5, true},
      {"sigmoid", sigmoid, 0.25, false},
      {"silu", silu, 0.5, true},
      {"softplus", softplus, 0.5, true},
      {"hardswish", hardswish, 0.5, true},
      {"mish", mish, 0.6, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(slope_at(row.function, 0) == doctest::Approx(row.slope_at_0).epsilon(1e-14));
    CHECK(std::isnan(value_at(row.function, kNan)));
    for (double x : {1e4, 1e200, 1.7e308}) {
      CHECK(value_at(row.function, x) == doctest::Approx(row.grows ? x : 1));
      CHECK(slope_at(row.function, x) == (row.grows ? 1 : 0));
      CHECK(bend_at(row.function, x) == 0);
      CHECK(std::isfinite(value_at(row.function, -x)));
      CHECK(std::abs(slope_at(row.function, -x)) <= 0.01);
      CHECK(std::isfinite(bend_at(row.function, -x)));
    }
    // Half precision is rounded once, at the end.
    Tensor half = row.function(tensor({1.7, -0.3, 9.0}).cast(DType::F16));
    CHECK(half.dtype() == DType::F16);
    CHECK(half.to_vector() ==
          row.function(tensor({1.7, -0.3, 9.0}).cast(DType::F16).cast(DType::F32))
              .cast(DType::F16)
              .to_vector());
  }
}

TEST_CASE("tensor: activations are accurate to the last digits of f64") {
  struct Row {
    std::string name;
    Tensor (*function)(const Operand&);
    double (*value)(double);
    double (*slope)(double);
    double (*bend)(double);
  };
  static constexpr auto kLogistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const Row rows[] = {
      {"softplus", softplus,
       [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, kLogistic,
       [](double x) { return kLogistic(x) * kLogistic(-x); }},
      {"sigmoid", sigmoid, kLogistic, [](double x) { return kLogistic(x) * kLogistic(-x); },
       [](double x) { return kLogistic(x) * kLogistic(-x) * -std::tanh(x / 2); }},
      {"elu", [](const Operand& x) { return elu(x); },
       [](double x) { return x > 0 ? x : std::expm1(x); },
       [](double x) { return x > 0 ? 1 : std::exp(x); },
       [](double x) { return x > 0 ? 0 : std::exp(x); }},
  };
  for (const Row& row : rows) {
    for (double x :
         {-700.0, -40.0, -20.0, -3.0, -1e-3, -1e-10, 1e-10, 1e-3, 3.0, 20.0, 40.0, 700.0}) {
      CAPTURE(row.name);
      CAPTURE(x);
      auto near = [](double got, double wanted) {
        return std::abs(got - wanted) <= 1e-13 * std::abs(wanted) + 1e-300;
      };
      CHECK(near(value_at(row.function, x), row.value(x)));
      CHECK(near(slope_at(row.function, x), row.slope(x)));
      // Near 0 the bend of sigmoid is a difference of slopes of size one.
      CHECK(std::abs(bend_at(row.function, x) - row.bend(x)) <=
            1e-13 * std::abs(row.bend(x)) + 1e-15);
    }
  }
}

TEST_CASE("tensor: norms of constant and of large half precision rows") {
  Tensor same = full({2, 4}, 3, DType::F64);
  for (double value : layer_norm(same).to_vector<double>()) CHECK(value == 0);
  for (double value : grad(sum(layer_norm(same)), {same})[0].to_vector<double>())
    CHECK(std::isfinite(value));
  for (double value : grad(sum(rms_norm(same * 0)), {same})[0].to_vector<double>())
    CHECK(std::isfinite(value));
  // The squares do not fit f16.
  Tensor large = tensor({-600.0f, 600.0f, -600.0f, 600.0f}).cast(DType::F16);
  CHECK(layer_norm(large).dtype() == DType::F16);
  CHECK(layer_norm(large).to_vector() == std::vector<float>{-1, 1, -1, 1});
  CHECK(rms_norm(large).to_vector() == std::vector<float>{-1, 1, -1, 1});
  CHECK(layer_norm(large, 1, ones({4})).dtype() == DType::F32);
}

TEST_CASE("tensor: padding of a max pool never wins") {
  Tensor low = full({1, 1, 4}, -5);
  for (float value : max_pool(low, {3}, {.stride = {1}, .padding = {1}}).to_vector())
    CHECK(value == -5);
  Tensor integers = full({1, 1, 4}, -100, DType::I8);
  CHECK(max_pool(integers, {2}, {.padding = {1}}).dtype() == DType::I8);
  CHECK(max_pool(integers, {2}, {.padding = {1}}).to_vector<int>() == std::vector<int>(3, -100));
  Tensor infinite = full({1, 1, 3}, -kInf);
  for (float value : max_pool(infinite, {3}, {.stride = {1}, .padding = {1}}).to_vector())
    CHECK(value == -std::numeric_limits<float>::infinity());
  // A window does not see what lies beside it.
  Tensor spoiled = tensor({1.0, 2.0, kNan, 4.0, kInf, 6.0, 7.0});
  std::vector<double> means = adaptive_avg_pool(spoiled, {7}).to_vector<double>();
  CHECK(means[1] == 2);
  std::vector<double> thirds =
      adaptive_avg_pool(tensor({1.0, 2.0, 3.0, 4.0, kInf}), {3}).to_vector<double>();
  CHECK(thirds[0] == 1.5);
  CHECK(thirds[1] == 3);
}

TEST_CASE("tensor: targets of losses") {
  Tensor logits = constant({4, 3}), log_p = log_softmax(logits);
  std::vector<double> p = log_p.to_vector<double>();
  // u8 cannot hold -255, which would be class 1 in 8 bits: nothing is ignored.
  Tensor bytes = tensor<uint8_t>({0, 1, 2, 1});
  double wanted = -(p[0] + p[4] + p[8] + p[10]) / 4;
  CHECK(cross_entropy(logits, bytes, Reduction::Mean, 0, -255).item() == doctest::Approx(wanted));
  CHECK(nll_loss(log_p, bytes).item() == doctest::Approx(wanted));
  // Ignored ones do not count in the mean, nor in the smoothing.
  Tensor holes = tensor<int64_t>({0, -100, 2, -100});
  auto smooth = [&](size_t row, size_t target) {
    double all = p[row * 3] + p[row * 3 + 1] + p[row * 3 + 2];
    return -0.8 * p[row * 3 + target] - 0.2 * all / 3;
  };
  CHECK(cross_entropy(logits, holes, Reduction::Mean, 0.2, -100).item() ==
        doctest::Approx((smooth(0, 0) + smooth(2, 2)) / 2));
  std::vector<double> each =
      cross_entropy(logits, holes, Reduction::None, 0.2, -100).to_vector<double>();
  CHECK(each[0] == doctest::Approx(smooth(0, 0)));
  CHECK(each[1] == 0);
  CHECK(cross_entropy(logits, holes, Reduction::Sum, 0.2, -100).item() ==
        doctest::Approx(smooth(0, 0) + smooth(2, 2)));
  CHECK(nll_loss(log_p, holes).item() == doctest::Approx(-(p[0] + p[8]) / 2));  // by default
  CHECK(nll_loss(log_p, holes, Reduction::Sum).item() == doctest::Approx(-(p[0] + p[8])));
  // Nothing that counts has no mean, as in PyTorch.
  Tensor nothing = tensor<int64_t>({-100, -100, -100, -100});
  CHECK(std::isnan(cross_entropy(logits, nothing).item()));
  CHECK(cross_entropy(logits, nothing, Reduction::Sum).item() == 0);
  // One example, and a class that is impossible: where(), not 0 * -inf.
  CHECK(cross_entropy(logits[0], reshape(tensor({2}), Sizes{})).item() == doctest::Approx(-p[2]));
  CHECK(cross_entropy(tensor({0.0, -kInf}, {1, 2}), tensor({0})).item() == 0);
  CHECK(mse_loss(tensor({1, 3}), 1).item() == 2);
}

TEST_CASE("tensor: targets that are no class make the loss NaN") {
  Tensor logits = constant({4, 3}), target = input("target", {4}, DType::I32);
  auto given = [&](const Tensor& value, std::vector<int32_t> classes) {
    return evaluate({value}, {.inputs = {{target, from_data(classes, {4})}}})[0]
        .to_vector<double>();
  };
  for (int32_t bad : {3, -1, 100, std::numeric_limits<int32_t>::min()}) {
    CAPTURE(bad);
    CHECK(std::isnan(given(cross_entropy(logits, target), {0, bad, 2, 1})[0]));
    CHECK(std::isnan(given(nll_loss(logits, target), {0, bad, 2, 1})[0]));
    std::vector<double> each =
        given(cross_entropy(logits, target, Reduction::None), {0, bad, 2, 1});
    CHECK(std::isnan(each[1]));
    CHECK(std::isfinite(each[0] + each[2] + each[3]));
  }
  // -100 is no class either where nothing is ignored.
  CHECK(
      std::isnan(given(cross_entropy(logits, target, Reduction::Mean, 0, {}), {0, -100, 2, 1})[0]));
  // An ignored target has no gradient, and the others share the whole.
  Tensor slope = grad(cross_entropy(logits, target), {logits})[0];
  std::vector<double> got = given(slope, {0, -100, 2, -100});
  for (size_t i : {3, 4, 5, 9, 10, 11}) CHECK(got[i] == 0);
  std::vector<double> p = softmax(logits).to_vector<double>();
  CHECK(got[0] == doctest::Approx((p[0] - 1) / 2));
  CHECK(got[8] == doctest::Approx((p[8] - 1) / 2));
}
