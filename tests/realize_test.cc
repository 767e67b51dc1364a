// Values: realising, reading, binding, assigning, random numbers.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "error_text.h"
#include "ir/graph.h"

using namespace anneal;

namespace {}  // namespace

TEST_CASE("realize: values are computed once and kept") {
  Tensor x = tensor({1.0f, 2.0f}) * 3, same = x;
  x.realize();
  CHECK(x.node()->op == Op::Buffer);
  CHECK(same.node() == x.node());
  CHECK((x + 1).to_vector() == std::vector<float>{4, 7});
  CHECK(sum(x).item() == 9);
  CHECK(tensor({7}).item<int>() == 7);
}

TEST_CASE("realize: reading converts as a cast does") {
  Tensor x = tensor({-1.5, 300.0, double{NAN}, 0.0});
  CHECK(x.to_vector<int32_t>() == std::vector<int32_t>{-1, 300, 0, 0});
  CHECK(x.to_vector<uint8_t>() == std::vector<uint8_t>{0, 255, 0, 0});
  CHECK(tensor({true, false}).to_vector<double>() == std::vector<double>{1, 0});
  CHECK(cast(tensor({1.0f, 1e-3f}), DType::BF16).to_vector()[1] == 0.00099945068359375f);
}

TEST_CASE("realize: assignments happen after every read of the step") {
  Tensor a = parameter("a", tensor({1.0f})), b = parameter("b", tensor({2.0f}));
  evaluate({a.assign(b + 0.0f), b.assign(a + 0.0f)});  // swaps
  CHECK(a.item() == 2);
  CHECK(b.item() == 1);
  for (int i = 0; i < 5; ++i) a.assign(a * 2).realize();
  CHECK(a.item() == 64);
}

TEST_CASE("realize: a value read before an assignment stays, a new one sees it") {
  Tensor w = parameter("w", tensor({1.0f}));
  Tensor before = w * 10;
  CHECK(before.realize().item() == 10);
  w.assign(w + 1).realize();
  CHECK(before.item() == 10);
  CHECK((w * 10).item() == 20);
  Tensor copy = evaluate({w})[0];
  w.assign(w + 1).realize();
  CHECK(copy.item() == 2);
}

TEST_CASE("realize: a parameter has memory of its own") {
  Tensor start = tensor({1.0f, 2.0f});
  Tensor a = parameter("a", start), b = parameter("b", a);
  a.assign(a * 10).realize();
  CHECK(start.to_vector() == std::vector<float>{1, 2});
  CHECK(b.to_vector() == std::vector<float>{1, 2});
  CHECK(a.name() == "a");
}

TEST_CASE("realize: one program serves every binding") {
  Variable n("n", 1, 100);
  Tensor x = input("x", {n}, DType::F64);
  Tensor y = sum(x) / from_dim(n, DType::F64);
  for (int64_t size : {1, 5, 100}) {
    Tensor data = arange(Dim(size), DType::F64);
    CHECK(y.item({.sizes = {{n, size}}, .inputs = {{x, data}}}) ==
          (static_cast<double>(size) - 1) / 2);
  }
}

TEST_CASE("realize: mistakes") {
  Variable n("n", 1, 4);
  Tensor x = input("x", {n}), w = parameter("w", tensor({1.0f}));
  Tensor four = zeros({4});
  CHECK(contains(error_of([&] { x.to_vector(); }), "n has no value"));
  CHECK(contains(error_of([&] { input("y", {2}).to_vector(); }), "input \"y\" has no contents"));
  CHECK(contains(error_of([&] { x.to_vector({.sizes = {{n, 9}}, .inputs = {{x, four}}}); }), "9"));
  CHECK(contains(error_of([&] { x.to_vector({.sizes = {{n, 3}}, .inputs = {{x, four}}}); }), "4"));
  CHECK(contains(
      error_of([&] { x.to_vector({.sizes = {{n, 4}}, .inputs = {{x, cast(four, DType::I32)}}}); }),
      "cast the value"));
  CHECK(contains(error_of([&] { zeros({3}).item(); }), "has 3 elements, its shape is [3]"));
  CHECK(contains(error_of([&] { (w * 2).assign(w); }), "only a parameter can be assigned to"));
  CHECK(contains(error_of([&] { w.assign(zeros({2})); }), "\"w\" is f32[1], the value is f32[2]"));
  CHECK(contains(error_of([&] { evaluate({input("place", {1}).assign(w)}); }),
                 "no memory to assign to"));
  CHECK(contains(error_of([&] { from_data(std::vector<float>{1, 2, 3}, {2, 2}); }),
                 "3 values do not fill [2, 2]"));
  CHECK(contains(error_of([&] { zeros({-3}); }), "negative"));
  CHECK(contains(error_of([&] { Tensor() + 1; }), "the tensor is empty"));
  CHECK(contains(error_of([&] { parameter("p", zeros({n})); }), "symbolic shape [n]"));
  std::string text = error_of([&] { zeros({2}) + zeros({3}); });
  CHECK(contains(text, "error: add: shapes do not broadcast: [2] and [3]"));
  CHECK(contains(text, "realize_test.cc:" + std::to_string(__LINE__ - 2)));
  CHECK(contains(text, "hint: "));
}

TEST_CASE("random: the same seed gives the same numbers, draws differ") {
  Generator a(42), b(42), c(43);
  std::vector<float> first = a.uniform({100}).to_vector(), second = a.uniform({100}).to_vector();
  CHECK(first == b.uniform({100}).to_vector());
  CHECK(first != second);
  CHECK(first != c.uniform({100}).to_vector());
  // A resumed generator goes on where the first one is.
  Generator resumed(a.seed(), a.draw());
  CHECK(a.normal({10}).to_vector() == resumed.normal({10}).to_vector());
  seed(5);
  std::vector<float> once = rand({4}).to_vector();
  seed(5);
  CHECK(once == rand({4}).to_vector());
}

TEST_CASE("random: distributions") {
  Generator random(1);
  constexpr int64_t kCount = 20000;
  auto moments = [](const std::vector<double>& values) {
    double mean = 0, square = 0;
    for (double v : values) mean += v / static_cast<double>(values.size());
    for (double v : values) square += (v - mean) * (v - mean) / static_cast<double>(values.size());
    return std::pair(mean, square);
  };
  std::vector<double> uniform = random.uniform({kCount}, -1, 3).to_vector<double>();
  CHECK(std::ranges::all_of(uniform, [](double v) { return v >= -1 && v < 3; }));
  CHECK(moments(uniform).first == doctest::Approx(1).epsilon(0.03));
  CHECK(moments(uniform).second == doctest::Approx(16.0 / 12).epsilon(0.03));
  std::vector<double> normal = random.normal({kCount}, 2, 3).to_vector<double>();
  CHECK(std::ranges::all_of(normal, [](double v) { return std::isfinite(v); }));
  CHECK(moments(normal).first == doctest::Approx(2).epsilon(0.05));
  CHECK(moments(normal).second == doctest::Approx(9).epsilon(0.05));
  std::vector<int64_t> integers = random.integers({kCount}, -2, 5).to_vector<int64_t>();
  std::vector<int> counts(7);
  for (int64_t v : integers) ++counts.at(static_cast<size_t>(v + 2));
  for (int count : counts) CHECK(count == doctest::Approx(kCount / 7.0).epsilon(0.1));
}
