// Sums of many terms: rounding errors must not grow with how many there are, in no form that a sum
// can take: of everything, of rows, of columns, of products, of convolutions; on every device.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>
#include <anneal/functional.h>

#include "ir/scalar.h"

using namespace anneal;

namespace {

// Of what the sum of sizes |x| is, in f32. An addition is off by 6e-8 of its result at most; one
// after the other, the ten million of a constant come to 1e-4 and more.
constexpr double kLimit = 2e-6;

// What stays of a number in a dtype.
float rounded(float value, DType dtype) {
  return static_cast<float>(Scalar::of(dtype, value).as_double());
}

std::vector<float> equal_terms(int64_t count, DType dtype = DType::F32) {
  return std::vector<float>(static_cast<size_t>(count), rounded(0.1f, dtype));
}

// Between 0 and 1, no two neighbours alike.
std::vector<float> mixed_terms(int64_t count, DType dtype = DType::F32) {
  std::vector<float> terms;
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    terms.push_back(rounded(static_cast<float>(state >> 40) * 0x1p-24f, dtype));
  }
  return terms;
}

double in_f64(const std::vector<float>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}
double squares_in_f64(const std::vector<float>& terms) {
  return std::inner_product(terms.begin(), terms.end(), terms.begin(), 0.0);
}

double variance_in_f64(const std::vector<float>& terms) {
  const auto count = static_cast<double>(terms.size());
  const double mean_of = in_f64(terms) / count;
  double spread = 0;
  for (float term : terms) spread += (term - mean_of) * (term - mean_of);
  return spread / count;
}

// A matrix all of whose columns hold the terms, so that there is one right answer for each.
Tensor as_columns(const std::vector<float>& terms, int64_t columns) {
  std::vector<float> all;
  all.reserve(terms.size() * static_cast<size_t>(columns));
  for (float term : terms) all.insert(all.end(), static_cast<size_t>(columns), term);
  return from_data(all, {static_cast<int64_t>(terms.size()), columns});
}

// A program over terms in columns, and what every element of its result is.
struct SumCase {
  const char* name;
  int64_t columns;
  std::function<Tensor(const Tensor& x)> program;
  double (*expected)(const std::vector<float>& terms);
};

const std::vector<SumCase>& sum_cases() {
  static const auto count = [](const std::vector<float>& terms) {
    return static_cast<double>(terms.size());
  };
  static const std::vector<SumCase> cases{
      {"sum", 1, [](const Tensor& x) { return sum(x); }, in_f64},
      {"sum of two axes", 1, [](const Tensor& x) { return sum(reshape(x, {-1, 100})); }, in_f64},
      {"mean", 1, [](const Tensor& x) { return mean(x); },
       [](const std::vector<float>& terms) { return in_f64(terms) / count(terms); }},
      {"norm", 1, [](const Tensor& x) { return sqrt(sum(x * x)); },
       [](const std::vector<float>& terms) { return std::sqrt(squares_in_f64(terms)); }},
      {"dot", 1, [](const Tensor& x) { return dot(reshape(x, {-1}), reshape(x, {-1})); },
       squares_in_f64},
      {"columns", 4, [](const Tensor& x) { return sum(x, {0}); }, in_f64},
      {"columns of vectors", 48, [](const Tensor& x) { return sum(x * x, {0}); }, squares_in_f64},
      {"long rows of columns", 640, [](const Tensor& x) { return sum(x, {0}); }, in_f64},
      {"batches of columns", 640,
       [](const Tensor& x) { return sum(reshape(x, {-1, 100, 640}), {0, 1}); }, in_f64},
      {"rows", 4, [](const Tensor& x) { return sum(contiguous(transpose(x)), {1}); }, in_f64},
      {"product of vectors", 2, [](const Tensor& x) { return matmul(transpose(x), x); },
       squares_in_f64},
      {"product", 48, [](const Tensor& x) { return matmul(transpose(x), x); }, squares_in_f64},
      {"product of rows", 96,
       [](const Tensor& x) { return matmul(contiguous(transpose(x)), x) + 0.0; }, squares_in_f64},
      {"softmax over all", 1,
       [](const Tensor& x) { return dot(reshape(x, {-1}), softmax(reshape(x, {-1}) * 0, 0)); },
       [](const std::vector<float>& terms) { return in_f64(terms) / count(terms); }},
  };
  return cases;
}

Tensor narrow(const std::vector<float>& values, DType dtype) {
  return from_data(values, {static_cast<int64_t>(values.size())}).cast(dtype);
}

double worst(const Tensor& result, double expected) {
  double error = 0;
  for (double value : result.to_vector<double>()) {
    REQUIRE(std::isfinite(value));
    error = std::max(error, std::fabs(value / expected - 1));
  }
  return error;
}

void check(const std::string& name, const Tensor& result, double expected, double limit = kLimit) {
  INFO(name << ", expected " << expected);
  const double error = worst(result, expected);
  INFO("off by " << error);
  CHECK(error <= limit);
}

// All cases, with so many elements.
void check_cases(int64_t elements, DType dtype = DType::F32) {
  const double result_rounding = dtype == DType::F32 ? 0 : 0x1p-8;
  for (const SumCase& each : sum_cases())
    for (const bool equal : {true, false}) {
      const int64_t count = elements / each.columns / 100 * 100;
      const std::vector<float> terms =
          equal ? equal_terms(count, dtype) : mixed_terms(count, dtype);
      Tensor x = as_columns(terms, each.columns).cast(dtype);
      CAPTURE(equal);
      check(each.name, each.program(x), each.expected(terms), kLimit + result_rounding);
    }
}

}  // namespace

TEST_CASE("long sums: errors do not grow with the number of terms") {
  for (const int64_t elements : {100'000, 1'000'000, 10'000'000}) check_cases(elements);
}

TEST_CASE("long sums: terms of narrow floats are added in f32") {
  check_cases(3'000'000, DType::BF16);
  check_cases(100'000, DType::F16);  // whose largest number is 65504
}

// (1 + e)(1 + e) - (1 + 2e) is e * e, which no product that is rounded keeps.
TEST_CASE(
    "long sums: products of narrow floats are exact in matmul and its like, on every device") {
  struct Format {
    DType dtype;
    float step;
  };
  for (const char* device : {"cpu", "interpreter", "webgpu"})
    for (auto [dtype, e] : {Format{DType::BF16, 0x1p-7f}, Format{DType::F16, 0x1p-10f}}) {
      CAPTURE(device);
      CAPTURE(name(dtype));
      DeviceScope scope(device);
      Tensor a = narrow({1 + e, -1}, dtype), b = narrow({1 + e, 1 + 2 * e}, dtype);
      Tensor row = reshape(a, {1, 2}), column = reshape(b, {2, 1}), weight = full({1, 1}, 1, dtype);
      Tensor weighed = matmul(reshape(a, {2, 1}), weight) * column;
      for (const Tensor& result :
           {dot(a, b), matmul(row, column), einsum("ij,jk->ik", {row, column}),
            conv1d(reshape(a, {1, 1, 2}), reshape(b, {1, 1, 2})),
            grad(sum(weighed), {weight})[0]}) {
        CHECK(result.dtype() == dtype);
        CHECK(result.item() == e * e);
      }
      for (const Tensor& result : {sum(a * b), sum(reshape(a * b, {2, 1}))})
        CHECK(result.item() == 0);
    }
}

TEST_CASE("long sums: the variance of many terms") {
  const std::vector<float> terms = mixed_terms(10'000'000);
  check("variance", var(from_data(terms, {10'000'000}), {}, false, 0), variance_in_f64(terms));
}

// As many terms as f32 has digits for, many times over: none of them is in memory.
TEST_CASE("long sums: a thousand million terms") {
  Tensor x = expand(from_data(equal_terms(1 << 20), {1, 1 << 20}), {1000, 1 << 20});
  Tensor zero = expand(from_data(std::vector<float>(1000, 0.0f), {1000, 1}), {1000, 1 << 20});
  check("all", sum(x + zero), 1000.0 * (1 << 20) * 0.1f);
}

TEST_CASE("long sums: a symbolic number of terms") {
  Variable n("n", 1, 20'000'000);
  Tensor x = input("x", {n}), y = input("y", {n, 4});
  for (const int64_t count : {7, 5'000, 1'000'003}) {
    const std::vector<float> terms = mixed_terms(count);
    Bindings bindings{.sizes = {{n, count}},
                      .inputs = {{x, from_data(terms, {count})}, {y, as_columns(terms, 4)}}};
    const std::vector<Tensor> results =
        evaluate({sum(x), sum(y, {0}), matmul(transpose(y), y)}, bindings);
    check("sum", results[0], in_f64(terms));
    check("columns", results[1], in_f64(terms));
    check("product", results[2], squares_in_f64(terms));
  }
}

TEST_CASE("long sums: gradients that sum over a batch") {
  const int64_t batch = 200, side = 66, places = batch * 64 * 64;
  Tensor images = from_data(equal_terms(batch * 2 * side * side), {batch, 2, side, side});
  Tensor weight = from_data(std::vector<float>(72, 0.0f), {4, 2, 3, 3});
  for (const bool winograd : {true, false}) {
    Tensor out = conv2d(images, weight, {}, {.winograd = winograd});
    check("conv2d", grad(sum(out), {weight})[0], static_cast<double>(places) * 0.1f, 4 * kLimit);
  }
  Tensor bias = from_data(std::vector<float>(8, 0.0f), {8});
  Tensor x = from_data(equal_terms(500'000 * 8), {500'000, 8});
  check("bias", grad(sum((bias + x) * x), {bias})[0], 500'000 * double{0.1f});
}

TEST_CASE("long sums: the same bits for every number of threads") {
  const int before = threads();
  for (const SumCase& each : sum_cases()) {
    CAPTURE(each.name);
    const std::vector<float> terms = mixed_terms(1'000'000 / each.columns / 100 * 100);
    std::vector<std::vector<float>> results;
    for (const int count : {1, 2, 5}) {
      set_threads(count);
      results.push_back(each.program(as_columns(terms, each.columns)).to_vector());
    }
    set_threads(before);
    CHECK(results[1] == results[0]);
    CHECK(results[2] == results[0]);
  }
}

// By a driver that computes on the CPU: fewer terms than above, more than one stage has.
TEST_CASE("long sums: on a GPU") {
  DeviceScope scope("webgpu");
  check_cases(1'000'000);
}
