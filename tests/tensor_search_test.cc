// Order statistics, search, resizing and losses where the table of op cases does not reach: what
// users are told about mistakes, special values, and random tensors against the standard library.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "mistakes.h"

using namespace anneal;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

Tensor symbolic() { return input("x", {Variable("n", 1, 64), 3, 5}); }

// clang-format off
const std::vector<Mistake> kMistakes{
  {__LINE__, [] { linspace(0, 1, -1); }, "linspace: the count is -1", "0 numbers or more"},
  {__LINE__, [] { linspace(0, kInf, 3); }, "linspace: cannot go from 0 to inf", "finite"},
  {__LINE__, [] { logspace(0, 1, 3, -2); }, "logspace: the base is -2", "above 0"},
  {__LINE__, [] { meshgrid({zeros({2}), zeros({2, 3})}); }, "meshgrid: tensor 1 is [2, 3]", "one axis"},
  {__LINE__, [] { clamp(zeros({2}), zeros({3}), ones({2})); }, "clamp: shapes do not broadcast", "equal or 1"},
  {__LINE__, [] { diff(zeros({2}), -1); }, "diff: the order is -1", "0 or more"},
  {__LINE__, [] { cummax(zeros({2}), 1); }, "cummax: axis 1 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { argsort(zeros({})); }, "argsort: axis -1 is out of range for rank 0", "no axes"},
  {__LINE__, [] { median(zeros({2, 0}), 1); }, "median: the axes to look along are empty in [2, 0]", "an element"},
  {__LINE__, [] { quantile(zeros({2}), 1.5); }, "quantile: q is 1.5", "0 to 1"},
  {__LINE__, [] { quantile(zeros({2}), kNan); }, "quantile: q is nan", "0 to 1"},
  {__LINE__, [] { quantile(zeros({2}), zeros({2, 2})); }, "quantile: q is [2, 2]", "a scalar or one axis"},
  {__LINE__, [] { quantile(zeros({2}), zeros({2}, DType::I32)); }, "quantile: q is i32", "floats"},
  {__LINE__, [] { norm(zeros({2}), kNan); }, "norm: p is NaN", "2, 1, infinity"},
  {__LINE__, [] { searchsorted(zeros({}), zeros({2})); }, "searchsorted: a scalar is no sorted axis", "one"},
  {__LINE__, [] { searchsorted(zeros({2, 3}), zeros({3})); }, "searchsorted: the sorted columns are [2, 3], the values [3]", "same axes"},
  {__LINE__, [] { searchsorted(zeros({2, 3}), zeros({4, 3})); }, "searchsorted: x is [2, 3] and the index [4, 3]", "equal or 1"},
  {__LINE__, [] { bincount(zeros({2}), 3); }, "bincount: x is f32, not an integer", "cast"},
  {__LINE__, [] { bincount(zeros({2}, DType::I32), -3); }, "bincount: the length -3 is negative", "starts at 0"},
  {__LINE__, [] { bincount(zeros({2}, DType::I32), 3, zeros({3})); }, "bincount: x is [2], the weights [3]", "one weight"},
  {__LINE__, [] { nonzero(zeros({2}), -1); }, "nonzero: the size -1 is negative", "starts at 0"},
  {__LINE__, [] { interpolate(zeros({2, 3}), {.size = {2}}); }, "interpolate: x is [2, 3]", "[batch, channels, space..]"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3}), {}); }, "interpolate: neither a size nor a scale is given", "one of them"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3}), {.size = {2}, .scale = {2}}); }, "interpolate: a size and a scale are given", "one of them"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3, 3}), {.size = {2, 2, 2}}); }, "interpolate: size has 3 numbers for 2 axes of space", "one for all"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3}), {.size = {0}}); }, "interpolate: axis 2 of [1, 1, 3] would become 0", "start at 1"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3}), {.scale = {0.1}}); }, "interpolate: axis 2 of [1, 1, 3] would become 0", "start at 1"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3}), {.scale = {-1}}); }, "interpolate: a scale is -1", "above 0"},
  {__LINE__, [] { interpolate(zeros({1, 1, 3}), {.size = {2}, .align_corners = true}); }, "interpolate: nearest elements have no corners", "Linear"},
  {__LINE__, [] { interpolate(permute(symbolic(), {1, 2, 0}), {.scale = {1.5}}); }, "interpolate: the symbolic size n cannot be scaled by 1.5", "whole number"},
  {__LINE__, [] { l1_loss(zeros({8, 1}), zeros({8})); }, "l1_loss: shapes differ: prediction is [8, 1], target is [8]", "reshape or expand"},
  {__LINE__, [] { huber_loss(zeros({2}), zeros({2}), Reduction::Mean, 0); }, "huber_loss: delta is 0", "above 0"},
  {__LINE__, [] { smooth_l1_loss(zeros({2}), zeros({2}), Reduction::Mean, -1); }, "smooth_l1_loss: beta is -1", "0 or more"},
  {__LINE__, [] { kl_div(zeros({2}), zeros({3})); }, "kl_div: shapes differ: log_probabilities is [2]", "reshape"},
  {__LINE__, [] { hinge_loss(zeros({2}), zeros({3})); }, "hinge_loss: shapes differ: scores is [2]", "reshape"},
};
// clang-format on

Floats random_floats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(random() % 4096) / 64 - 32;
  return values;
}

}  // namespace

TEST_CASE("search: mistakes are explained on the user's line") { check_mistakes(kMistakes); }

TEST_CASE("search: places in sorted tensors are those of the standard library") {
  for (size_t count : {0u, 1u, 2u, 7u, 64u, 1000u}) {
    CAPTURE(count);
    Floats sorted = random_floats(count, 1), values = random_floats(300, 2);
    std::ranges::sort(sorted);
    Ints left, right;
    for (float value : values) {
      left.push_back(
          static_cast<int32_t>(std::ranges::lower_bound(sorted, value) - sorted.begin()));
      right.push_back(
          static_cast<int32_t>(std::ranges::upper_bound(sorted, value) - sorted.begin()));
    }
    const Tensor columns = from_data(sorted), wanted = from_data(values);
    CHECK(searchsorted(columns, wanted).to_vector<int32_t>() == left);
    CHECK(searchsorted(columns, wanted, true).to_vector<int32_t>() == right);
  }
  // NaN comes last.
  const Tensor sorted = tensor({1.f, kInf, kNan, kNan}), values = tensor({kNan, kInf, -kInf});
  CHECK(searchsorted(sorted, values).to_vector<int32_t>() == Ints{2, 1, 0});
  CHECK(searchsorted(sorted, values, true).to_vector<int32_t>() == Ints{4, 2, 0});
  CHECK(searchsorted(tensor({1, 3, 5}), 4).to_vector<int32_t>() == Ints{2});
}

TEST_CASE("search: a symbolic axis is sorted and searched at any of its sizes") {
  Variable n("n", 0, 100);
  Tensor x = input("x", {n});
  Tensor sorted = sort(x, 0).values, order = argsort(x, 0, true);
  Tensor found = searchsorted(sorted, tensor({-8.f, 0.f, 8.f}));
  Tensor middle = median(x);
  for (size_t count : {0u, 1u, 2u, 33u, 64u, 100u}) {
    CAPTURE(count);
    const Floats values = random_floats(count, static_cast<unsigned>(count));
    Floats expected = values;
    std::ranges::sort(expected);
    const Bindings bindings{.sizes = {{n, static_cast<int64_t>(count)}},
                            .inputs = {{x, from_data(values)}}};
    const std::vector<Tensor> results = evaluate({sorted, order, found, middle}, bindings);
    CHECK(results[0].to_vector() == expected);
    const Ints places = results[1].to_vector<int32_t>();
    for (size_t i = 0; i < count; ++i)
      CHECK(values[static_cast<size_t>(places[i])] == expected[count - 1 - i]);
    const Ints steps = results[2].to_vector<int32_t>();
    CHECK(steps[1] == std::ranges::lower_bound(expected, 0.f) - expected.begin());
    if (count == 0)
      CHECK(std::isnan(results[3].item()));
    else
      CHECK(results[3].item() == (expected[(count - 1) / 2] + expected[count / 2]) / 2);
  }
}

TEST_CASE("search: quantiles of long columns are exact, and NaN is not hidden") {
  const int64_t count = 100'001;
  const Tensor x = from_data(random_floats(count, 3));
  Floats sorted = x.to_vector();
  std::ranges::sort(sorted);
  CHECK(quantile(x, 0.25).item<float>() == sorted[25'000]);
  CHECK(median(x).item<float>() == sorted[50'000]);
  CHECK(quantile(x, 1).item<float>() == sorted.back());
  CHECK(std::isnan(median(concat({x, tensor({kNan})})).item()));
  CHECK(std::isnan(quantile(tensor({1.f, 2.f}), tensor({1.5f})).to_vector()[0]));
  CHECK(std::isnan(quantile(tensor({1.f, 2.f}), tensor({-0.5f})).to_vector()[0]));
  CHECK(median(tensor({-kInf, 1.f, kInf})).item() == 1);
  CHECK(median(tensor({1.f, kInf, kInf})).item() == kInf);
  CHECK(median(full({3}, 1, DType::F16)).dtype() == DType::F16);
  CHECK(median(tensor({1, 2})).item() == 1.5);
}

TEST_CASE("search: counts and places of large tensors") {
  std::mt19937 random(4);
  Ints values(5000);
  for (int32_t& value : values) value = static_cast<int32_t>(random() % 40) - 4;
  Ints counts(32), places;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < 32) ++counts[static_cast<size_t>(values[i])];
    if (values[i] == 7) places.push_back(static_cast<int32_t>(i));
  }
  CHECK(bincount(from_data(values), 32).to_vector<int32_t>() == counts);
  places.resize(1000, -1);
  CHECK(nonzero(from_data(values) == 7, 1000).to_vector<int32_t>() == places);
  CHECK(to_text(nonzero(zeros({}), 4).shape()) == "[4, 0]");
  CHECK(bincount(tensor({true, false, true}), 2).to_vector<int32_t>() == Ints{1, 2});
}

TEST_CASE("search: norms have a slope of 0 at 0, and clamp hands NaN on") {
  Tensor x = zeros({3});
  Tensor at = parameter("at", x);
  CHECK(grad(norm(at), {at})[0].to_vector() == Floats{0, 0, 0});
  CHECK(grad(norm(at, 3), {at})[0].to_vector() == Floats{0, 0, 0});
  const Floats clamped =
      clamp(tensor({kNan, 1.f, 1.f}), tensor({0.f, kNan, 0.f}), tensor({2.f, 2.f, kNan}))
          .to_vector();
  for (float value : clamped) CHECK(std::isnan(value));
  // An element that equals its bound keeps its slope.
  Tensor edge = parameter("edge", tensor({0.f, 1.f, 2.f}));
  Tensor kept = clamp(edge, zeros({3}), ones({3}));
  CHECK(grad(sum(kept), {edge})[0].to_vector() == Floats{1, 1, 0});
  CHECK(clamp(tensor({1, 5, 9}), tensor({2}), tensor({6})).to_vector<int>() ==
        std::vector{2, 5, 6});
}

TEST_CASE("search: a divergence of certain things is finite, its gradient too") {
  Tensor x = parameter("x", tensor({0.f, -kInf})), target = tensor({1.f, 0.f});
  const Tensor loss = kl_div(x, target, Reduction::Sum);
  CHECK(loss.item() == 0);
  CHECK(grad(loss, {x})[0].to_vector() == Floats{-1, 0});
}

TEST_CASE("search: resizing keeps dtypes that it need not mix") {
  Tensor bytes = tensor<uint8_t>({1, 2, 3, 4}, {1, 1, 2, 2});
  CHECK(interpolate(bytes, {.scale = {2}}).dtype() == DType::U8);
  CHECK(interpolate(bytes, {.scale = {2}, .mode = Interpolation::Linear}).dtype() == DType::F32);
  Tensor halves = cast(bytes, DType::F16);
  CHECK(interpolate(halves, {.size = {3}, .mode = Interpolation::Linear}).dtype() == DType::F16);
}
