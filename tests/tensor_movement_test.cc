// Movement, reductions, indexing and sorting where the table of op cases does not reach: symbolic
// sizes at their bindings, empty and scalar tensors, and random slices, paddings, scans and sorts
// against references written out element by element.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/device.h>
#include <anneal/tensor.h>

using namespace anneal;

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Sizes sizes_of(const Ints& shape) { return {shape.begin(), shape.end()}; }

int64_t count_of(const Ints& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// 0, 1, 2, .. in a shape.
Tensor numbers(const Ints& shape, DType dtype = DType::F32) {
  return cast(reshape(arange(count_of(shape)), sizes_of(shape)), dtype);
}

Ints shape_of(const Tensor& x) {
  Ints shape;
  for (const Dim& size : x.shape()) shape.push_back(size.value());
  return shape;
}

std::vector<float> line(std::initializer_list<float> values) { return values; }

// Equal elements; NaN equals NaN, and -0 differs from 0.
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) {
    return (x != x && y != y) || (x == y && std::signbit(double(x)) == std::signbit(double(y)));
  });
}

// ---- symbolic sizes

// A function of x[n, 4], which must give for every n what it gives where n is a number.
struct SymbolicCase {
  std::string name;
  int64_t least;  // the smallest n it is for
  std::function<Tensor(const Tensor&)> build;
};

// clang-format off
const SymbolicCase kSymbolicCases[] = {
  {"reshape", 0, [](const Tensor& x) { return reshape(x, {x.dim(0) * 2, 2}); }},
  {"reshape infers a number", 1, [](const Tensor& x) { return reshape(x, {x.dim(0), 2, -1}); }},
  {"reshape infers an expression", 0, [](const Tensor& x) { return reshape(x, {2, -1}); }},
  {"reshape without axes", 0, [](const Tensor& x) { return reshape(sum(x), {-1}); }},
  {"flatten", 0, [](const Tensor& x) { return flatten(x); }},
  {"permute", 0, [](const Tensor& x) { return permute(x, {1, 0}); }},
  {"expand", 0, [](const Tensor& x) { return expand(x, {3, x.dim(0), -1}); }},
  {"pad", 0, [](const Tensor& x) { return pad(x, {{x.dim(0), 1}, {0, 2}}, PadMode::Constant, 7); }},
  {"pad reflect", 3, [](const Tensor& x) { return pad(x, {{1, 2}, {3, 0}}, PadMode::Reflect); }},
  {"pad replicate", 1, [](const Tensor& x) { return pad(x, {{1, 2}, {3, 0}}, PadMode::Replicate); }},
  {"pad circular", 3, [](const Tensor& x) { return pad(x, {{1, 3}, {4, 0}}, PadMode::Circular); }},
  {"slice begin", 0, [](const Tensor& x) { return slice(x, {{.begin = 2}}); }},
  {"slice from the end", 0, [](const Tensor& x) { return slice(x, {{.begin = -3, .end = -1}}); }},
  {"slice to a size", 0, [](const Tensor& x) { return slice(x, {{.end = x.dim(0) / 2}}); }},
  {"slice beyond", 0, [](const Tensor& x) { return slice(x, {{.begin = x.dim(0) / 3, .end = x.dim(0) + 5}}); }},
  {"slice between unknowns", 0, [](const Tensor& x) { return slice(x, {{.begin = x.dim(0) / 2, .end = 3}}); }},
  {"slice steps", 0, [](const Tensor& x) { return slice(x, {{.step = 3}}); }},
  {"slice backwards", 0, [](const Tensor& x) { return slice(x, {{.begin = -2, .step = -2}, {.step = -1}}); }},
  {"flip", 0, [](const Tensor& x) { return flip(x); }},
  {"split", 0, [](const Tensor& x) { return split(concat({x, x + 1, x}), {x.dim(0), x.dim(0) * 2})[1]; }},
  {"chunk", 0, [](const Tensor& x) { return chunk(concat({x, x + 1}), 2)[1]; }},
  {"concat", 0, [](const Tensor& x) { return concat({x, x * 2, zeros({1, 4}), slice(x, {{.begin = 1}})}); }},
  {"stack", 0, [](const Tensor& x) { return stack({x, x + 1, x + 2}, -1); }},
  {"repeat", 0, [](const Tensor& x) { return repeat(x, 3, 0); }},
  {"tile", 0, [](const Tensor& x) { return tile(x, {2, 3, 1}); }},
  {"roll", 0, [](const Tensor& x) { return roll(x, 5, 0); }},
  {"roll back", 0, [](const Tensor& x) { return roll(x, -1, 0); }},
  {"tril", 0, [](const Tensor& x) { return tril(x, -1); }},
  {"triu", 0, [](const Tensor& x) { return triu(x, 1); }},
  {"diagonal", 0, [](const Tensor& x) { return diagonal(x); }},
  {"diagonal below", 0, [](const Tensor& x) { return diagonal(x, -2); }},
  {"diagonal above", 0, [](const Tensor& x) { return diagonal(x, 2); }},
  {"index", 1, [](const Tensor& x) { return x[-1] + x[0]; }},
  {"mean", 0, [](const Tensor& x) { return mean(x, 0); }},
  {"var", 0, [](const Tensor& x) { return var(x, 0, true); }},
  {"stddev", 0, [](const Tensor& x) { return stddev(x, {0, 1}, false, 0); }},
  {"argmax", 1, [](const Tensor& x) { return argmax(x % 3, 0); }},
  {"all and any", 0, [](const Tensor& x) { return stack({all(x < 9, 0), any(x > 9, 0)}); }},
  {"logsumexp", 0, [](const Tensor& x) { return logsumexp(x, 0); }},
  {"cumsum", 0, [](const Tensor& x) { return cumsum(x, 0); }},
  {"cumprod", 0, [](const Tensor& x) { return cumprod(x / 4, 0); }},
  {"take_along_axis", 0, [](const Tensor& x) { return take_along_axis(x, argmax(x, 1, true), 1); }},
  {"gather", 1, [](const Tensor& x) { return gather(x, 1, zeros({1, 2}, DType::I32) + 2); }},
  {"index_select", 0, [](const Tensor& x) { return index_select(x, tensor({0, 2, 9, 1}, {2, 2}), 0); }},
  {"index_select by many", 0, [](const Tensor& x) { return index_select(tensor({5.0f, 6.0f}), cast(x, DType::I32) % 3); }},
  {"scatter", 1, [](const Tensor& x) { return scatter(x, 1, zeros({1, 2}, DType::U8), 9.0); }},
  {"scatter_add", 0, [](const Tensor& x) { return scatter_add(x, 0, expand(tensor({0, 2, 0}).reshape({3, 1}), {3, 4}), 1.0); }},
  {"one_hot", 0, [](const Tensor& x) { return one_hot(arange(x.dim(0)), x.dim(0) + 1); }},
  {"sort along", 0, [](const Tensor& x) { return sort(x * 5 % 7, 0).values; }},
  {"argsort down", 0, [](const Tensor& x) { return argsort(x * 5 % 7, 0, true); }},
  {"topk along", 2, [](const Tensor& x) { return topk(x * 5 % 7, 2, 0).values; }},
  {"sort beside", 0, [](const Tensor& x) { return sort(x * 5 % 7, 1).values; }},
  {"topk beside", 0, [](const Tensor& x) { return topk(x * 5 % 7, 2, 1).indices; }},
};
// clang-format on

TEST_CASE("tensor: a symbolic size gives what its number gives") {
  DeviceScope exact("interpreter");
  for (const SymbolicCase& symbolic_case : kSymbolicCases) {
    CAPTURE(symbolic_case.name);
    Variable n("rows", symbolic_case.least, 12);
    Tensor x = input("x", {n, 4});
    Tensor result;
    try {
      result = symbolic_case.build(x);
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
      continue;
    }
    for (int64_t size : {0, 1, 2, 3, 4, 5, 8, 12}) {
      if (size < symbolic_case.least) continue;
      CAPTURE(size);
      try {
        Tensor known = numbers({size, 4});
        Tensor got = evaluate({result}, {.sizes = {{n, size}}, .inputs = {{x, known}}})[0];
        Tensor want = symbolic_case.build(known);
        CHECK(shape_of(got) == shape_of(want));
        CHECK(same_bits(got.to_vector<double>(), want.to_vector<double>()));
      } catch (const std::exception& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
  }
}

TEST_CASE("tensor: sizes of results are short expressions") {
  Variable n("n", 1, 64);
  Tensor x = input("x", {n, 6});
  CHECK(to_text(flatten(x).shape()) == "[n * 6]");
  CHECK(to_text(reshape(x, {-1, 3}).shape()) == "[n * 2, 3]");
  CHECK(to_text(reshape(x, {n, -1}).shape()) == "[n, 6]");
  CHECK(to_text(concat({x, x}).shape()) == "[n * 2, 6]");
  CHECK(to_text(slice(x, {{.begin = 1}}).shape()) == "[n - 1, 6]");
  CHECK(to_text(roll(x, 1, 0).shape()) == "[n, 6]");
  CHECK(to_text(pad(x, {{1, 1}, {0, 0}}).shape()) == "[n + 2, 6]");
  CHECK(to_text(slice(concat({x, x}), {{.step = 2}}).shape()) == "[n, 6]");
  CHECK(to_text(chunk(x, 3, 1)[2].shape()) == "[n, 2]");
}

// ---- scalars and empty tensors

TEST_CASE("tensor: scalars") {
  Tensor x = full({}, 3);
  for (const Tensor& y : {reshape(x, {}), permute(x, {}), expand(x, {}), pad(x, {}), slice(x, {}),
                          flip(x), squeeze(x), tile(x, {}), sum(x), prod(x), max(x), min(x),
                          mean(x), logsumexp(x), masked_fill(x, full({}, 0, DType::Bool), 1.0)}) {
    CHECK(y.rank() == 0);
    CHECK(y.item() == 3);
  }
  CHECK(var(x, {}, false, 0).item() == 0);
  CHECK(std::isnan(var(x).item()));
  CHECK(any(x).item() == 1);
  CHECK(all(5).item() == 1);
  CHECK(shape_of(flatten(x)) == Ints{1});
  CHECK(shape_of(unsqueeze(x, -1)) == Ints{1});
  CHECK(shape_of(reshape(x, {-1})) == Ints{1});
  CHECK(expand(2.0, {2, 2}).to_vector() == line({2, 2, 2, 2}));
  CHECK(stack({x, x + 1}).to_vector() == line({3, 4}));
  CHECK(tile(x, {2}).to_vector() == line({3, 3}));
  CHECK(one_hot(2, 4).to_vector() == line({0, 0, 1, 0}));
  CHECK(shape_of(index_select(numbers({3, 2}), 1)) == Ints{2});
  CHECK(index_select(numbers({3, 2}), 1).to_vector() == line({2, 3}));
}

TEST_CASE("tensor: empty axes") {
  Tensor x = zeros({0, 3}), none = zeros({0});
  CHECK(shape_of(reshape(x, {3, 0})) == Ints{3, 0});
  CHECK(shape_of(reshape(x, {-1, 3})) == Ints{0, 3});
  CHECK(shape_of(flatten(x)) == Ints{0});
  CHECK(shape_of(transpose(x)) == Ints{3, 0});
  CHECK(shape_of(expand(zeros({1, 3}), {0, 3})) == Ints{0, 3});
  CHECK(shape_of(concat({x, x})) == Ints{0, 3});
  CHECK(concat({x, ones({1, 3}), x}).to_vector() == line({1, 1, 1}));
  CHECK(pad(none, {{1, 1}}, PadMode::Constant, 2).to_vector() == line({2, 2}));
  CHECK(shape_of(pad(x, {{0, 0}, {1, 1}}, PadMode::Reflect)) == Ints{0, 5});
  CHECK(shape_of(slice(x, {{.step = -2}, {.step = 2}})) == Ints{0, 2});
  CHECK(shape_of(repeat(x, 2, 0)) == Ints{0, 3});
  CHECK(shape_of(repeat(ones({2}), 0, 0)) == Ints{0});
  CHECK(shape_of(tile(ones({2}), {0})) == Ints{0});
  CHECK(shape_of(roll(x, 2, 0)) == Ints{0, 3});
  CHECK(shape_of(tril(x)) == Ints{0, 3});
  CHECK(shape_of(diagonal(x)) == Ints{0});
  CHECK(shape_of(diagonal(ones({2, 2}), 5)) == Ints{0});
  CHECK(shape_of(diagonal(ones({2, 2}), -5)) == Ints{0});
  CHECK(chunk(none, 3).size() == 3);
  CHECK(split(none, {}).empty());
  CHECK(sum(x, 0).to_vector() == line({0, 0, 0}));
  CHECK(prod(x, 0).to_vector() == line({1, 1, 1}));
  CHECK(same_bits(mean(x, 0).to_vector(), line({kNan, kNan, kNan})));
  CHECK(same_bits(var(x, 0).to_vector(), line({kNan, kNan, kNan})));
  CHECK(logsumexp(none).item() == -kInf);
  CHECK(any(none).item() == 0);
  CHECK(all(none).item() == 1);
  CHECK(max(x, 1).to_vector().empty());
  CHECK(argmax(x, 1).to_vector().empty());
  for (const Tensor& y :
       {cumsum(x, 0), cumprod(x, 0), sort(x, 0).values, sort(x).values, topk(x, 0, 0).values,
        take_along_axis(x, zeros({0, 3}, DType::I32), 0), gather(x, 1, zeros({0, 3}, DType::I32)),
        scatter_add(x, 0, zeros({2, 3}, DType::I32), 1.0)}) {
    CHECK(shape_of(y) == Ints{0, 3});
    CHECK(y.to_vector().empty());
  }
  CHECK(take_along_axis(x, zeros({2, 3}, DType::I32), 0).to_vector() == std::vector<float>(6, 0));
  CHECK(shape_of(index_select(ones({2, 3}), zeros({0}, DType::I32))) == Ints{0, 3});
  CHECK(scatter(ones({2}), 0, zeros({0}, DType::I32), zeros({0})).to_vector() == line({1, 1}));
  CHECK(shape_of(one_hot(zeros({0}, DType::I32), 2)) == Ints{0, 2});
  CHECK(shape_of(one_hot(zeros({2}, DType::I32), 0)) == Ints{2, 0});
}

// ---- movement against references

// The indices a Python slice takes from an axis.
Ints python_slice(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
                  int64_t size) {
  auto place = [&](std::optional<int64_t> bound, int64_t otherwise) {
    if (!bound) return otherwise;
    int64_t at = *bound < 0 ? *bound + size : *bound;
    return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
  };
  Ints taken;
  if (step > 0)
    for (int64_t i = place(begin, 0); i < place(end, size); i += step) taken.push_back(i);
  else
    for (int64_t i = place(begin, size - 1); i > place(end, -1); i += step) taken.push_back(i);
  return taken;
}

TEST_CASE("tensor: random slices are Python's") {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 1500; ++round) {
    Ints shape(static_cast<size_t>(pick(1, 3)));
    for (int64_t& size : shape) size = pick(0, 7);
    std::vector<Slice> slices;
    std::vector<Ints> taken;
    std::string text;
    for (int64_t size : shape) {
      std::optional<int64_t> begin, end;
      if (pick(0, 3) != 0) begin = pick(-9, 9);
      if (pick(0, 3) != 0) end = pick(-9, 9);
      int64_t step = pick(1, 4) * (pick(0, 1) == 0 ? 1 : -1);
      text += std::to_string(size) + "[" + (begin ? std::to_string(*begin) : "") + ":" +
              (end ? std::to_string(*end) : "") + ":" + std::to_string(step) + "] ";
      taken.push_back(python_slice(begin, end, step, size));
      Slice slice{.step = step};
      if (begin) slice.begin = Dim(*begin);
      if (end) slice.end = Dim(*end);
      slices.push_back(slice);
    }
    CAPTURE(text);
    Floats want{0};  // positions, extended axis by axis
    Ints want_shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      Floats longer;
      for (double at : want)
        for (int64_t i : taken[axis])
          longer.push_back(at * static_cast<double>(shape[axis]) + static_cast<double>(i));
      want = longer;
      want_shape.push_back(static_cast<int64_t>(taken[axis].size()));
    }
    Tensor got = slice(numbers(shape), slices);
    REQUIRE(shape_of(got) == want_shape);
    REQUIRE(got.to_vector<double>() == want);
  }
}

TEST_CASE("tensor: extreme slices") {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Tensor x = numbers({5});
  CHECK(slice(x, {{.begin = kMin, .end = kMax}}).to_vector() == line({0, 1, 2, 3, 4}));
  CHECK(slice(x, {{.begin = kMax, .end = kMin, .step = kMin}}).to_vector() == line({4}));
  CHECK(slice(x, {{.begin = kMax, .end = kMin}}).to_vector().empty());
  CHECK(slice(x, {{.begin = 1, .step = kMax}}).to_vector() == line({1}));
  CHECK(roll(x, kMax, 0).to_vector() == roll(x, kMax % 5, 0).to_vector());
  CHECK(roll(x, kMin, 0).to_vector() == roll(x, 5 + kMin % 5, 0).to_vector());
  CHECK(tril(numbers({2, 2}), kMax).to_vector() == line({0, 1, 2, 3}));
  CHECK(triu(numbers({2, 2}), kMin).to_vector() == line({0, 1, 2, 3}));
  CHECK(triu(numbers({2, 2}), kMax).to_vector() == line({0, 0, 0, 0}));
  CHECK(shape_of(diagonal(numbers({2, 2}), kMin)) == Ints{0});
}

TEST_CASE("tensor: padding modes are NumPy's") {
  for (int64_t size = 1; size <= 5; ++size) {
    for (int64_t before = 0; before <= size; ++before) {
      for (int64_t after = 0; after <= size; ++after) {
        CAPTURE(size);
        CAPTURE(before);
        CAPTURE(after);
        Tensor x = numbers({2, size}) + 1;
        auto check = [&](PadMode mode, double value, auto source) {
          Floats want;
          for (int64_t row = 0; row < 2; ++row)
            for (int64_t i = -before; i < size + after; ++i) {
              int64_t at = source(i);
              want.push_back(at < 0 ? value : static_cast<double>(row * size + at + 1));
            }
          Tensor got = pad(x, {{0, 0}, {before, after}}, mode, value);
          CHECK(shape_of(got) == Ints{2, before + size + after});
          CHECK(got.to_vector<double>() == want);
        };
        auto inside = [&](int64_t i) { return i >= 0 && i < size ? i : -1; };
        check(PadMode::Constant, 0, inside);
        check(PadMode::Constant, -kInf, inside);
        check(PadMode::Replicate, 0,
              [&](int64_t i) { return std::clamp<int64_t>(i, 0, size - 1); });
        check(PadMode::Circular, 0, [&](int64_t i) { return (i + size) % size; });
        if (before < size && after < size)
          check(PadMode::Reflect, 0, [&](int64_t i) {
            return i < 0 ? -i : i < size ? i : 2 * size - 2 - i;
          });
      }
    }
  }
  CHECK(pad(tensor({true}), {{1, 1}}, PadMode::Constant, 1).to_vector<bool>() ==
        std::vector<bool>{true, true, true});
  CHECK(std::signbit(pad(tensor({1.0f}), {{1, 0}}, PadMode::Constant, -0.0).to_vector()[0]));
}

TEST_CASE("tensor: concat keeps every bit") {
  std::vector<float> special{-0.0f, 0.0f, kNan, kInf, -kInf, 1.5f};
  Tensor x = from_data(special, {6});
  for (size_t count : {1, 2, 3, 5, 8}) {
    std::vector<float> want;
    for (size_t i = 0; i < count; ++i) want.insert(want.end(), special.begin(), special.end());
    CHECK(same_bits(concat(std::vector<Tensor>(count, x)).to_vector(), want));
  }
  CHECK(same_bits(roll(x, 2, 0).to_vector(), line({-kInf, 1.5f, -0.0f, 0.0f, kNan, kInf})));
  CHECK(same_bits(diagonal(x.reshape({2, 3})).to_vector(), line({-0.0f, -kInf})));
  std::vector<bool> bits = concat({tensor({true, false}), tensor({true})}).to_vector<bool>();
  CHECK(bits == std::vector<bool>{true, false, true});
  Tensor mixed = concat({tensor({true}), tensor<int8_t>({-3}), tensor<uint8_t>({200})});
  CHECK(mixed.dtype() == DType::I16);
  CHECK(mixed.to_vector<int32_t>() == std::vector<int32_t>{1, -3, 200});
  int64_t large = (int64_t{1} << 62) + 1;
  CHECK(concat({tensor({large}), tensor({-large})}).to_vector<int64_t>() == Ints{large, -large});
}

TEST_CASE("tensor: pieces") {
  Tensor x = numbers({5, 2});
  std::vector<Tensor> chunks = chunk(x, 3);
  REQUIRE(chunks.size() == 3);
  CHECK(chunks[0].to_vector() == line({0, 1, 2, 3}));
  CHECK(chunks[2].to_vector() == line({8, 9}));
  CHECK(chunk(x, 4).size() == 3);
  CHECK(split(x, {1, 4})[1].to_vector() == line({2, 3, 4, 5, 6, 7, 8, 9}));
  CHECK(x[1].to_vector() == line({2, 3}));
  CHECK(x[-1][1].item() == 9);
  CHECK(repeat(tensor({1.0f, 2.0f}), 2, 0).to_vector() == line({1, 1, 2, 2}));
  CHECK(tile(tensor({1.0f, 2.0f}), {2}).to_vector() == line({1, 2, 1, 2}));
  CHECK(shape_of(tile(x, {3, 1, 2})) == Ints{3, 5, 4});
  CHECK(stack({x, x}, 1).dim(1) == 2);
  CHECK(diagonal(numbers({3, 4}), 1).to_vector() == line({1, 6, 11}));
  CHECK(diagonal(numbers({3, 4}), -1).to_vector() == line({4, 9}));
  CHECK(diagonal(numbers({2, 2, 2})).to_vector() == line({0, 3, 4, 7}));
}

// ---- reductions against references

TEST_CASE("tensor: dtypes of reductions") {
  struct Row {
    DType from, sum, mean;
  };
  for (auto [from, sums, means] : {Row{DType::Bool, DType::I32, DType::F32},
                                   {DType::I8, DType::I32, DType::F32},
                                   {DType::I16, DType::I32, DType::F32},
                                   {DType::U8, DType::U32, DType::F32},
                                   {DType::U16, DType::U32, DType::F32},
                                   {DType::I64, DType::I64, DType::F32},
                                   {DType::U64, DType::U64, DType::F32},
                                   {DType::F16, DType::F16, DType::F16},
                                   {DType::BF16, DType::BF16, DType::BF16},
                                   {DType::F64, DType::F64, DType::F64}}) {
    Tensor x = ones({3}, from);
    for (const Tensor& y : {sum(x), prod(x), cumsum(x), cumprod(x)}) CHECK(y.dtype() == sums);
    for (const Tensor& y : {mean(x), var(x), stddev(x), logsumexp(x)}) CHECK(y.dtype() == means);
    for (const Tensor& y : {max(x), min(x), sort(x).values, topk(x, 1).values})
      CHECK(y.dtype() == from);
    for (const Tensor& y : {argmax(x), argmin(x), sort(x).indices}) CHECK(y.dtype() == DType::I32);
    for (const Tensor& y : {any(x), all(x)}) CHECK(y.dtype() == DType::Bool);
    CHECK(sum(x).item() == 3);
    CHECK(max(x).item() == 1);
    CHECK(argmax(x).item() == 0);
    CHECK(sort(x).indices.to_vector<int32_t>() == std::vector<int32_t>{0, 1, 2});
  }
  CHECK(sum(full({300}, 200, DType::U8)).item() == 60000);
  CHECK(mean(full({4}, 60000, DType::F16)).item() == doctest::Approx(60000).epsilon(0.001));
  CHECK(var(tensor({1.0f, 3.0f}).cast(DType::F16) * 300).item() == kInf);  // 180000 is no f16
  CHECK(stddev(tensor({1.0f, 3.0f}).cast(DType::F16) * 300).item() == doctest::Approx(424.25));
}

TEST_CASE("tensor: NaN and infinities in reductions") {
  Tensor x = tensor({1.0f, kNan, kInf, kNan, -kInf, 0.0f}, {2, 3});
  CHECK(argmax(x, 1).to_vector<int32_t>() == std::vector<int32_t>{1, 0});
  CHECK(argmin(x, 1).to_vector<int32_t>() == std::vector<int32_t>{1, 0});
  CHECK(argmax(tensor({-kInf, -kInf})).item() == 0);
  CHECK(argmax(tensor({0.0f, -0.0f, 0.0f})).item() == 0);
  CHECK(argmin(tensor({3, 1, 2, 1})).item() == 1);
  CHECK(shape_of(argmax(x, 0, true)) == Ints{1, 3});
  CHECK(std::isnan(max(x).item()));
  CHECK(any(tensor({0.0f, kNan})).item() == 1);
  CHECK(max(tensor({true, false})).item() == 1);
  CHECK(min(tensor({true, false})).item() == 0);
  CHECK(logsumexp(tensor({-kInf, -kInf})).item() == -kInf);
  CHECK(logsumexp(tensor({kInf, 1.0f})).item() == kInf);
  CHECK(logsumexp(tensor({kInf, -kInf})).item() == kInf);
  CHECK(std::isnan(logsumexp(tensor({kNan, 1.0f})).item()));
  CHECK(logsumexp(tensor({1000.0f, 1000.0f})).item() == doctest::Approx(1000.6931));
  CHECK(logsumexp(tensor({-1000.0f, -kInf})).item() == -1000);
  CHECK(same_bits(cumsum(tensor({1.0f, kInf, 2.0f, -kInf, 1.0f})).to_vector(),
                  line({1, kInf, kInf, kNan, kNan})));
}

TEST_CASE("tensor: running sums and products of every length") {
  for (int64_t size : {1, 2, 127, 256, 257, 300, 1000, 40000}) {
    CAPTURE(size);
    Tensor x = (arange(size) * 7919 % 13 - 6).cast(DType::I64);
    Ints values = x.to_vector<int64_t>(), sums = values;
    std::partial_sum(values.begin(), values.end(), sums.begin());
    CHECK(cumsum(x).to_vector<int64_t>() == sums);
    if (size > 1000) continue;
    Tensor signs = where(arange(size) % 5 == 0, -1, 1), pair = stack({signs, signs * signs});
    std::vector<int32_t> products = signs.to_vector<int32_t>();
    std::partial_sum(products.begin(), products.end(), products.begin(), std::multiplies<>());
    products.resize(static_cast<size_t>(2 * size), 1);
    CHECK(cumprod(pair, 1).to_vector<int32_t>() == products);
    CHECK(cumprod(transpose(pair), 0).transpose().to_vector<int32_t>() == products);
  }
}

// ---- sorting and indexing

TEST_CASE("tensor: sort is stable, with NaN last") {
  std::mt19937 random(11);
  for (DType dtype :
       {DType::F32, DType::F64, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::I8,
        DType::U8, DType::I32, DType::U32, DType::I64, DType::U64, DType::Bool}) {
    for (size_t size : {1, 2, 3, 5, 8, 17, 33}) {
      CAPTURE(static_cast<int>(dtype));
      CAPTURE(size);
      const Floats pool{-8, -1.5, -1, -0.0, 0.0, 1, 1.5, 2, 100, kInf, -kInf, kNan};
      Floats raw;
      for (size_t i = 0; i < size; ++i) raw.push_back(pool[random() % pool.size()]);
      Tensor x = cast(from_data(raw, {static_cast<int64_t>(size)}), dtype);
      Floats values = x.to_vector<double>();
      for (bool descending : {false, true}) {
        std::vector<int32_t> order(size);
        std::iota(order.begin(), order.end(), 0);
        auto less = [&](double p, double q) { return p < q || (!std::isnan(p) && std::isnan(q)); };
        auto before = [&](int32_t a, int32_t b) {
          double p = values[size_t(a)], q = values[size_t(b)];
          if (descending) std::swap(p, q);
          return less(p, q) || (!less(q, p) && a < b);  // equal ones keep their order
        };
        std::sort(order.begin(), order.end(), before);
        Floats want;
        for (int32_t at : order) want.push_back(values[size_t(at)]);
        Sorted sorted = sort(x, 0, descending);
        CHECK(sorted.indices.to_vector<int32_t>() == order);
        CHECK(same_bits(sorted.values.to_vector<double>(), want));
        size_t k = size / 2;
        Sorted top = topk(x, static_cast<int64_t>(k), 0, descending);
        CHECK(top.indices.to_vector<int32_t>() ==
              std::vector<int32_t>(order.begin(), order.begin() + std::ptrdiff_t(k)));
      }
    }
  }
  int64_t large = (int64_t{1} << 62) + 1;  // neighbours that f64 cannot tell apart
  CHECK(sort(tensor({large + 1, large, -large})).values.to_vector<int64_t>() ==
        Ints{-large, large, large + 1});
  Tensor cube = numbers({3, 4, 2}) * 7 % 11;
  CHECK(sort(cube, 1).values.to_vector() ==
        sort(transpose(cube, 1, 2), 2).values.transpose(1, 2).to_vector());
}

TEST_CASE("tensor: reading and writing at places") {
  Tensor x = numbers({3, 2});
  CHECK(take_along_axis(x, tensor({2, 0, -1, 3}, {4, 1}), 0).to_vector() ==
        line({4, 5, 0, 1, 0, 0, 0, 0}));
  CHECK(gather(x, 0, tensor({2, 1}, {2, 1})).to_vector() == line({4, 2}));
  CHECK(shape_of(index_select(x, zeros({2, 2}, DType::U8), 1)) == Ints{3, 2, 2});
  CHECK(index_select(x, tensor({1, 1, 0}), 1).to_vector() == line({1, 1, 0, 3, 3, 2, 5, 5, 4}));
  CHECK(scatter(x, 0, tensor({2, 2}, {1, 2}), tensor({8.0f, 9.0f}, {1, 2})).to_vector() ==
        line({0, 1, 2, 3, 8, 9}));
  CHECK(scatter(x, 0, tensor({0, 2}, {2, 1}), 7).to_vector() ==
        line({7, 1, 2, 3, 7, 5}));  // a narrow index
  CHECK(scatter(x, 0, tensor({0, 0}, {2, 1}), tensor({7.0f, 8.0f}, {2, 1})).to_vector() ==
        line({8, 1, 2, 3, 4, 5}));
  CHECK(scatter(x, 1, tensor<uint64_t>({5, 0}, {1, 2}), 9).to_vector() == line({9, 1, 2, 3, 4, 5}));
  CHECK(scatter_add(x, 0, tensor({1, 1, 1}, {3, 1}), 1).to_vector() == line({0, 1, 5, 3, 4, 5}));
  CHECK(scatter_add(tensor({1, 2}), 0, tensor({0, -1, 2, 0}), 5).to_vector<int32_t>() ==
        std::vector<int32_t>{11, 2});
  CHECK(one_hot(tensor<int8_t>({1, -1, 3}), 3, DType::I32).to_vector<int32_t>() ==
        std::vector<int32_t>{0, 1, 0, 0, 0, 0, 0, 0, 0});
  CHECK(masked_fill(x, tensor({true, false}), -kInf).to_vector() ==
        line({-kInf, 1, -kInf, 3, -kInf, 5}));
}

}  // namespace
