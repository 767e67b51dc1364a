// Arrays of doubles that the naive loops of tests work on, and random ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

namespace anneal {

// Sums of few products of numbers below one, in another order.
inline constexpr double kNaiveTolerance = 1e-12;

struct NaiveArray {
  std::vector<int64_t> shape;
  std::vector<double> data;

  explicit NaiveArray(std::vector<int64_t> sizes) : shape(std::move(sizes)) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    data.assign(count, 0);
  }
  double& at(const std::vector<int64_t>& place) {
    size_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      offset = offset * static_cast<size_t>(shape[i]) + static_cast<size_t>(place[i]);
    return data[offset];
  }
  // 0 outside.
  double read(const std::vector<int64_t>& place) {
    for (size_t i = 0; i < shape.size(); ++i)
      if (place[i] < 0 || place[i] >= shape[i]) return 0;
    return at(place);
  }
};

inline Sizes sizes_of(const std::vector<int64_t>& shape) {
  return Sizes(shape.begin(), shape.end());
}
inline Tensor tensor_of(const NaiveArray& array) {
  return from_data(array.data, sizes_of(array.shape));
}

inline std::mt19937 random_numbers(unsigned seed) { return std::mt19937(seed); }
inline int64_t pick(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
inline NaiveArray random_array(std::vector<int64_t> shape, std::mt19937& random) {
  NaiveArray array(std::move(shape));
  for (double& value : array.data) value = std::uniform_real_distribution<double>(-1, 1)(random);
  return array;
}

// Calls visit(place) for every place of a shape.
inline void for_each_place(const std::vector<int64_t>& shape,
                           const std::function<void(const std::vector<int64_t>&)>& visit) {
  for (int64_t size : shape)
    if (size == 0) return;
  std::vector<int64_t> place(shape.size(), 0);
  for (;;) {
    visit(place);
    size_t axis = shape.size();
    while (axis > 0 && ++place[axis - 1] == shape[axis - 1]) place[--axis] = 0;
    if (axis == 0) return;
  }
}

inline std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline bool close(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

// One check a tensor, or the tests would take longer to report than to run.
inline void expect_same(const Tensor& result, const NaiveArray& wanted,
                        double tolerance = kNaiveTolerance) {
  REQUIRE(to_text(result.shape()) == to_text(sizes_of(wanted.shape)));
  std::vector<double> values = result.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (close(values[i], wanted.data[i], tolerance)) continue;
    CAPTURE(i);
    CHECK(values[i] == wanted.data[i]);
    return;
  }
  CHECK(values.size() == wanted.data.size());
}

// A fixed tensor of small numbers.
inline Tensor constant(const std::vector<int64_t>& shape, unsigned seed = 1) {
  std::mt19937 random = random_numbers(seed);
  return tensor_of(random_array(shape, random));
}

}  // namespace anneal
