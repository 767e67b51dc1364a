// Products, activations, norms, convolutions, pools and losses beside the table of op cases: what a
// mistake says, symbolic sizes against static ones, extreme values, and naive loops over random
// configurations. Single results of single ops belong to op_cases_*.cc. Long, for it is tables.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>
#include <anneal/device.h>

#include "ir/node.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Sums of few products of numbers below one, in another order.
constexpr double kTolerance = 1e-12;

// ---- arrays the naive loops work on

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;

  explicit Array(std::vector<int64_t> sizes) : shape(std::move(sizes)) {
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

Sizes sizes_of(const std::vector<int64_t>& shape) { return Sizes(shape.begin(), shape.end()); }
Tensor tensor_of(const Array& array) { return from_data(array.data, sizes_of(array.shape)); }

std::mt19937 random_numbers(unsigned seed) { return std::mt19937(seed); }
int64_t pick(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
Array random_array(std::vector<int64_t> shape, std::mt19937& random) {
  Array array(std::move(shape));
  for (double& value : array.data) value = std::uniform_real_distribution<double>(-1, 1)(random);
  return array;
}

// Calls visit(place) for every place of a shape.
void for_each_place(const std::vector<int64_t>& shape,
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

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool close(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

// One check a tensor, or the tests would take longer to report than to run.
void expect_same(const Tensor& result, const Array& wanted, double tolerance = kTolerance) {
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

// ---- mistakes

struct Mistake {
  std::string text;
  std::function<void()> make;
  const char* message;
  const char* hint;
  unsigned line;
};

#define MISTAKE(call, message, hint) {#call, [&] { call; }, message, hint, __LINE__}

void expect_errors(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.text);
    try {
      mistake.make();
      FAIL_CHECK("no error");
    } catch (const UserError& error) {
      CAPTURE(error.what());
      CHECK(error.message().find(mistake.message) == 0);
      CHECK(error.hint().find(mistake.hint) != std::string::npos);
      CHECK(error.where().line() == mistake.line);
      CHECK(std::string(error.what()).find("tensor_functional_test.cc") != std::string::npos);
    }
  }
}

Tensor of(const Sizes& sizes, DType dtype = DType::F32) { return zeros(sizes, dtype); }

}  // namespace

// clang-format off
TEST_CASE("tensor: mistakes in products") {
  Tensor s = of({}), v3 = of({3}), v4 = of({4}), m = of({2, 3});
  expect_errors({
      MISTAKE(matmul(of({32, 128}), of({10, 128})), "matmul: inner sizes differ: left is [32, 128], right is [10, 128]", "right needs 128 rows; did you mean transpose(right)?"),
      MISTAKE(matmul(of({128, 32}), of({128, 10})), "matmul: inner sizes differ: left is [128, 32], right is [128, 10]", "left needs 128 columns; did you mean transpose(left)?"),
      MISTAKE(matmul(m, v4), "matmul: inner sizes differ: left is [2, 3], right is [4]", "right needs 3 rows"),
      MISTAKE(matmul(of({2, 1}), m.reshape({3, 2})), "matmul: inner sizes differ: left is [2, 1], right is [3, 2]", "right needs 1 rows"),
      MISTAKE(matmul(of({5, 2, 3}), of({4, 3, 2})), "matmul: batch sizes differ: left is [5, 2, 3], right is [4, 3, 2] (5 and 4)", "equal or 1"),
      MISTAKE(matmul(s, m), "matmul: both must have an axis: left is [], right is [2, 3]", "use *"),
      MISTAKE(matmul(m, 2.0), "matmul: both must have an axis: left is [2, 3], right is []", "use *"),
      MISTAKE(matmul(Tensor(), m), "matmul: the tensor is empty", "assign a value"),
      MISTAKE(dot(m, v3), "dot: both must have one axis: left is [2, 3], right is [3]", "use matmul"),
      MISTAKE(dot(v3, v4), "dot: sizes differ: left is [3], right is [4]", "same number of elements"),
      MISTAKE(outer(m, v3), "outer: both must have one axis: left is [2, 3], right is [3]", "flatten"),
      MISTAKE(einsum("ij", {}), "einsum: there are no tensors", "one tensor a term"),
      MISTAKE(einsum("ij,jk", {m}), "einsum: \"ij,jk\" is for 2 tensors, but 1 are given", "commas"),
      MISTAKE(einsum("ij,", {m}), "einsum: \"ij,\" is for 2 tensors, but 1 are given", "commas"),
      MISTAKE(einsum("i1", {m}), "einsum: '1' in \"i1\" is not an index", "letters, commas"),
      MISTAKE(einsum("i..", {m}), "einsum: '.' in \"i..\" is not an index", "letters, commas"),
      MISTAKE(einsum("ij-i", {m}), "einsum: '-' in \"ij-i\" is not an index", "one \"->\""),
      MISTAKE(einsum("......", {m}), "einsum: \"......\" has \"...\" twice in one term", "all axes that have no letter"),
      MISTAKE(einsum("ij->i->j", {m}), "einsum: \"ij->i->j\" has more than one \"->\"", "one \"->\""),
      MISTAKE(einsum("i->i", {m}), "einsum: operand 0 is [2, 3], but its term in \"i->i\" has 1 indices", "one letter an axis"),
      MISTAKE(einsum("ijk...", {m}), "einsum: operand 0 is [2, 3], but its term in \"ijk...\" has 3 indices", "more axes"),
      MISTAKE(einsum("ij->ii", {m}), "einsum: index i is twice in the result of \"ij->ii\"", "names one axis"),
      MISTAKE(einsum("ij->ik", {m}), "einsum: index k of the result is in no term of \"ij->ik\"", "come from an operand"),
      MISTAKE(einsum("ii", {m}), "einsum: index i of \"ii\" is 2 in operand 0 [2, 3] and 3 in operand 0 [2, 3]", "same size"),
      MISTAKE(einsum("ij,jk", {m, m}), "einsum: index j of \"ij,jk\" is 3 in operand 0 [2, 3] and 2 in operand 1 [2, 3]", "same size"),
      MISTAKE(einsum("...,...", {m, v4}), "einsum: an axis of \"...\" of \"...,...\" is 3 in operand 0 [2, 3] and 4 in operand 1 [4]", "same size"),
  });
}

TEST_CASE("tensor: mistakes in activations and norms") {
  Tensor s = of({}), v = of({6}), x = of({2, 6, 4});
  Variable n("n", 1, 9);
  Tensor symbolic = input("x", {2, n, 4});
  expect_errors({
      MISTAKE(relu(Tensor()), "relu: the tensor is empty", "assign"),
      MISTAKE(gelu(Tensor()), "gelu: the tensor is empty", "assign"),
      MISTAKE(softmax(x, 3), "softmax: axis 3 is out of range for rank 3", "-3 to 2"),
      MISTAKE(log_softmax(s), "log_softmax: axis -1 is out of range for rank 0", "a scalar has no axes"),
      MISTAKE(layer_norm(x, 4), "layer_norm: 4 axes to normalise, but x is [2, 6, 4]", "1 to 3"),
      MISTAKE(layer_norm(x, 0), "layer_norm: 0 axes to normalise", "1 to 3"),
      MISTAKE(layer_norm(x, 1, v), "layer_norm: x is [2, 6, 4], whose last axes are [4], but the weight is for [6]", "give x last axes of [6]"),
      MISTAKE(layer_norm(x, 2, {}, v), "layer_norm: x is [2, 6, 4], whose last axes are [6, 4], but the bias is for [6]", "or a bias of [6, 4]"),
      MISTAKE(layer_norm(x, 1, {}, {}, -1), "layer_norm: epsilon is -1", "0 or more"),
      MISTAKE(layer_norm(x, 1, {}, {}, kNan), "layer_norm: epsilon is nan", "0 or more"),
      MISTAKE(rms_norm(s), "rms_norm: x is a scalar", "its last one"),
      MISTAKE(rms_norm(x, v), "rms_norm: x is [2, 6, 4], whose last axes are [4], but the weight is for [6]", "give x last axes of [6]"),
      MISTAKE(group_norm(x, 0), "group_norm: groups is 0", "at least one"),
      MISTAKE(group_norm(x, 4), "group_norm: 6 channels do not divide into 4 groups", "divides the channels"),
      MISTAKE(group_norm(symbolic, 2), "group_norm: n channels do not divide into 2 groups", "variable * groups"),
      MISTAKE(group_norm(v, 2), "group_norm: x is [6], but needs a batch and a channel axis", "[batch, channels, ..]"),
      MISTAKE(batch_norm(v), "batch_norm: x is [6], but needs a batch and a channel axis", "[batch, channels, ..]"),
      MISTAKE(batch_norm(x, of({4})), "batch_norm: x is [2, 6, 4] and has 6 channels, but the weight is for 4", "give x 4 channels"),
      MISTAKE(batch_norm(x, of({4}), v, {}, {}), "batch_norm: x is [2, 6, 4] and has 6 channels, but the mean is for 4", "give x 4 channels"),
      MISTAKE(batch_norm(x, of({4}), of({4})), "batch_norm: x is [2, 6, 4] and has 6 channels, but the weight is for 4", "give x 4 channels"),
      MISTAKE(group_norm(x, 2, of({4}), of({4})), "group_norm: x is [2, 6, 4] and has 6 channels, but the weight is for 4", "axis 1"),
      MISTAKE(batch_norm(x, of({6, 1})), "batch_norm: the weight is [6, 1], but needs one value a channel", "the shape [6]"),
      MISTAKE(batch_norm(x, v, {}, {}, {}), "batch_norm: the variance is empty", "the batch's own"),
  });
}

TEST_CASE("tensor: mistakes in convolutions") {
  Tensor x = of({2, 4, 9}), w = of({6, 4, 3}), image = of({1, 4, 5, 5});
  Variable n("n", 2, 9), k("k", 1, 3);
  Tensor sequence = input("x", {2, 4, n});
  expect_errors({
      MISTAKE(conv1d(image, w), "conv1d: x is [1, 4, 5, 5], but needs 3 axes", "[batch, channels, space..]"),
      MISTAKE(conv2d(image, w), "conv2d: weight is [6, 4, 3], but needs 4 axes", "[out channels, channels / groups, kernel..]"),
      MISTAKE(conv_transpose1d(x, image), "conv_transpose1d: weight is [1, 4, 5, 5], but needs 3 axes", "[channels, out channels / groups, kernel..]"),
      MISTAKE(conv1d(x, of({6, 3, 3})), "conv1d: channels differ: x is [2, 4, 9], weight is [6, 3, 3]", "x needs 3 channels"),
      MISTAKE(conv1d(x, w, {}, {.groups = 2}), "conv1d: channels differ: x is [2, 4, 9], weight is [6, 4, 3] with 2 groups", "x needs 8 channels"),
      MISTAKE(conv1d(x, of({5, 2, 3}), {}, {.groups = 2}), "conv1d: the 5 channels of weight do not divide into 2 groups", "multiple of groups"),
      MISTAKE(conv1d(x, w, {}, {.groups = 0}), "conv1d: groups is 0", "at least one"),
      MISTAKE(conv1d(x, w, of({4})), "conv1d: bias is [4], but the result has 6 channels", "shape [6]"),
      MISTAKE(conv1d(x, w, {}, {.stride = {1, 2}}), "conv1d: stride has 2 numbers for 1 spatial axes", "one for each"),
      MISTAKE(conv1d(x, w, {}, {.stride = {}}), "conv1d: stride has 0 numbers for 1 spatial axes", "one for each"),
      MISTAKE(conv1d(x, w, {}, {.stride = {0}}), "conv1d: stride is [0]", "starts at 1"),
      MISTAKE(conv1d(x, w, {}, {.padding = {-1}}), "conv1d: padding is [-1]", "starts at 0"),
      MISTAKE(conv1d(x, w, {}, {.dilation = {0}}), "conv1d: dilation is [0]", "starts at 1"),
      MISTAKE(conv1d(x, of({6, 4, 0})), "conv1d: kernel is [0]", "starts at 1"),
      MISTAKE(conv1d(x, w, {}, {.output_padding = {1}}), "conv1d: output_padding is 1", "transposed"),
      MISTAKE(conv1d(x, w, {}, {.dilation = {5}}), "conv1d: a window spans 11, but axis 2 has 9 elements", "smaller kernel"),
      MISTAKE(conv1d(x, w, {}, {.padding = {1}, .dilation = {8}}), "conv1d: a window spans 17, but axis 2 has 11 elements with its padding of 1", "pad more"),
      MISTAKE(conv1d(sequence, w), "conv1d: a window spans 3, but axis 2 of size n can have as few as 2 elements", "larger minimum"),
      MISTAKE(conv1d(x, input("w", {6, 4, k})), "conv1d: the kernel size k of weight [6, 4, k] is symbolic", "must be numbers"),
      MISTAKE(conv_transpose1d(x, w), "conv_transpose1d: channels differ: x is [2, 4, 9], weight is [6, 4, 3]", "x's channels, 4"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), of({4})), "conv_transpose1d: bias is [4], but the result has 6 channels", "shape [6]"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), {}, {.groups = 3}), "conv_transpose1d: the 4 channels of weight do not divide into 3 groups", "multiple of groups"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), {}, {.stride = {2}, .output_padding = {2}}), "conv_transpose1d: output_padding is 2, stride is 2 and dilation is 1", "smaller than one of them"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), {}, {.padding = {6}}), "conv_transpose1d: the result would have the size -1 on axis 2: x is [2, 4, 9], padding is 6", "pad less"),
      MISTAKE(conv_transpose1d(sequence, of({4, 6, 3}), {}, {.padding = {2}}), "conv_transpose1d: the result would have the size 0 or less on axis 2", "pad less"),
  });
}

TEST_CASE("tensor: mistakes in pools") {
  Tensor x = of({2, 4, 9});
  expect_errors({
      MISTAKE(max_pool(x, {}), "max_pool: kernel is empty", "one number an axis"),
      MISTAKE(max_pool(x, {1, 2, 3, 4}), "max_pool: kernel has 4 numbers, but x is [2, 4, 9]", "last axes are pooled"),
      MISTAKE(max_pool(x, {0}), "max_pool: kernel is [0]", "starts at 1"),
      MISTAKE(max_pool(x, {2}, {.padding = {2}}), "max_pool: padding is 2, but a window spans 2", "half a window"),
      MISTAKE(max_pool(x, {10}), "max_pool: a window spans 10, but axis 2 has 9 elements", "smaller kernel"),
      MISTAKE(avg_pool(x, {2}, {.padding = {2}}), "avg_pool: padding is 2, but a window spans 2", "half a window"),
      MISTAKE(avg_pool(x, {2, 2}, {.stride = {1, 1, 1}}), "avg_pool: stride has 3 numbers for 2 spatial axes", "one for each"),
      MISTAKE(adaptive_avg_pool(x, {}), "adaptive_avg_pool: sizes is empty", "one number an axis"),
      MISTAKE(adaptive_avg_pool(x, {0}), "adaptive_avg_pool: a size is 0", "start at 1"),
      MISTAKE(adaptive_max_pool(of({2, 0}), {1}), "adaptive_max_pool: axis 1 of [2, 0] can be empty", "nothing to pool"),
      MISTAKE(unfold(x, {2, 2}), "unfold: x is [2, 4, 9], but a kernel of 2 numbers needs 4 axes", "[batch, channels, space..]"),
      MISTAKE(unfold(x, {2}, {.dilation = {0}}), "unfold: dilation is [0]", "starts at 1"),
  });
}

TEST_CASE("tensor: mistakes in losses") {
  Tensor logits = of({8, 3}), classes = of({8}, DType::I32);
  expect_errors({
      MISTAKE(cross_entropy(of({}), classes), "cross_entropy: logits are a scalar", "axis of classes"),
      MISTAKE(cross_entropy(logits, of({8})), "cross_entropy: target is f32, but holds class indices", "argmax"),
      MISTAKE(cross_entropy(logits, of({8, 1}, DType::I32)), "cross_entropy: target is [8, 1], but must be [8]: logits are [8, 3]", "without axis 1"),
      MISTAKE(cross_entropy(of({3}), classes), "cross_entropy: target is [8], but must be []: logits are [3]", "a scalar target"),
      MISTAKE(cross_entropy(logits, from_data(std::vector{0, 1, 2, 3, 0, 0, 0, 0}, {8})), "cross_entropy: target 3 of element 3 is not one of 3 classes", "ignore_index is -100"),
      MISTAKE(nll_loss(logits, from_data(std::vector<int8_t>{0, -1, 2, 2, 0, 0, 0, 0}, {2, 4}).flatten()), "nll_loss: target -1 of element 1 is not one of 3 classes", "count from 0"),
      MISTAKE(cross_entropy(logits, full({8}, 5, DType::U8).realize(), Reduction::Mean, 0, {}), "cross_entropy: target 5 of element 0 is not one of 3 classes", "ignore_index is not used"),
      MISTAKE(cross_entropy(logits, classes, Reduction::Mean, 1.5), "cross_entropy: label_smoothing is 1.5", "0 to 1"),
      MISTAKE(cross_entropy(logits, classes, Reduction::Mean, kNan), "cross_entropy: label_smoothing is nan", "0 to 1"),
      MISTAKE(nll_loss(logits, of({3}, DType::I64)), "nll_loss: target is [3], but must be [8]: log_probabilities are [8, 3]", "without axis 1"),
      MISTAKE(mse_loss(of({8, 1}), of({8})), "mse_loss: shapes differ: prediction is [8, 1], target is [8]", "reshape or expand"),
      MISTAKE(bce_with_logits(of({8, 1}), of({8})), "bce_with_logits: shapes differ: logits is [8, 1], target is [8]", "reshape or expand"),
  });
}
// clang-format on

// ---- symbolic sizes

namespace {

struct SymbolicCase {
  std::string name;
  std::function<Sizes(const Dim& n)> shape;
  std::function<Tensor(const Tensor& x)> build;
};

// A fixed tensor of small numbers.
Tensor constant(const std::vector<int64_t>& shape, unsigned seed = 1) {
  std::mt19937 random = random_numbers(seed);
  return tensor_of(random_array(shape, random));
}

}  // namespace

TEST_CASE("tensor: symbolic sizes give what static ones give") {
  auto batch = [](const Dim& n) { return Sizes{n, 4, 6}; };
  auto channels = [](const Dim& n) { return Sizes{2, n, 6}; };
  auto sequence = [](const Dim& n) { return Sizes{2, 4, n}; };
  auto image = [](const Dim& n) { return Sizes{2, 2, n * 2, n + 3}; };
  auto square = [](const Dim& n) { return Sizes{n, n}; };
  auto w = [] { return constant({2, 4, 3}); };
  const std::vector<SymbolicCase> cases{
      {"matmul rows", sequence,
       [](const Tensor& x) { return matmul(transpose(x), constant({4, 3})); }},
      {"matmul inner", sequence, [](const Tensor& x) { return matmul(x, transpose(x)); }},
      {"attention", sequence,
       [](const Tensor& x) { return matmul(softmax(matmul(transpose(x), x)), transpose(x)); }},
      {"dot", [](const Dim& n) { return Sizes{n}; }, [](const Tensor& x) { return dot(x, x); }},
      {"outer", [](const Dim& n) { return Sizes{n * 2}; },
       [](const Tensor& x) { return outer(x, x); }},
      {"einsum", sequence,
       [](const Tensor& x) { return einsum("bcn,bdn,...n->...cd", {x, x, x}); }},
      {"einsum diagonal", square, [](const Tensor& x) { return einsum("ii->i", {x}); }},
      {"layer_norm batch", batch, [](const Tensor& x) { return layer_norm(x, 2); }},
      {"layer_norm inner", sequence, [](const Tensor& x) { return layer_norm(x, 1); }},
      {"group_norm space", sequence, [](const Tensor& x) { return group_norm(x, 2); }},
      {"group_norm channels", [](const Dim& n) { return Sizes{2, n * 2, 3}; },
       [](const Tensor& x) { return group_norm(x, 2); }},
      {"batch_norm", batch, [](const Tensor& x) { return batch_norm(x, constant({4})); }},
      {"batch_norm channels", channels, [](const Tensor& x) { return batch_norm(x); }},
      {"conv batch", batch, [&](const Tensor& x) { return conv1d(x, w()); }},
      {"conv sequence", sequence, [&](const Tensor& x) { return conv1d(x, w(), constant({2})); }},
      {"conv stride", sequence,
       [&](const Tensor& x) { return conv1d(x, w(), {}, {.stride = {2}, .padding = {1}}); }},
      {"conv patches", sequence,
       [&](const Tensor& x) { return conv1d(x, w(), {}, {.stride = {3}, .padding = {1}}); }},
      {"conv far apart", sequence,
       [&](const Tensor& x) { return conv1d(x, w(), {}, {.stride = {5}, .padding = {2}}); }},
      {"conv dilation", sequence,
       [&](const Tensor& x) {
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
    for (const SymbolicCase& row : cases) check(row);
  }
}

// ---- extreme values

TEST_CASE("tensor: softmax, logsumexp and losses of far values") {
  Tensor x = tensor({1e4, -1e4, 0.0});
  expect_same(
      softmax(x),
      [] {
        Array a({3});
        a.data = {1, 0, 0};
        return a;
      }(),
      0);
  expect_same(
      log_softmax(x),
      [] {
        Array a({3});
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

// ---- naive loops

namespace {

struct ConvSetup {
  size_t space;
  ConvOptions options;
  Array x, weight, bias;
  std::vector<int64_t> kernel, result;
  int64_t channels, outputs;

  explicit ConvSetup(std::mt19937& random)
      : space(static_cast<size_t>(pick(random, 1, 3))), x({}), weight({}), bias({}) {
    options = {{}, {}, {}, pick(random, 1, 3), {}, true};
    channels = options.groups * pick(random, 1, 2);
    outputs = options.groups * pick(random, 1, 2);
    std::vector<int64_t> shape{pick(random, 1, 2), channels};
    for (size_t i = 0; i < space; ++i) {
      int64_t k = pick(random, 1, 3), s = pick(random, 1, 4), d = pick(random, 1, 3);
      int64_t p = pick(random, 0, 2), extent = d * (k - 1) + 1;
      int64_t size = std::max<int64_t>(1, extent - 2 * p) + pick(random, 0, 4);
      kernel.push_back(k);
      options.stride.push_back(s);
      options.dilation.push_back(d);
      options.padding.push_back(p);
      options.output_padding.push_back((size + 2 * p - extent) % s);
      shape.push_back(size);
      result.push_back((size + 2 * p - extent) / s + 1);
    }
    x = random_array(shape, random);
    weight = random_array(joined({outputs, channels / options.groups}, kernel), random);
    bias = random_array({outputs}, random);
  }

  ConvOptions forward() const {
    ConvOptions plain = options;
    plain.output_padding = {0};
    return plain;
  }
};

using Convolution = Tensor (*)(const Operand&, const Operand&, const Tensor&, const ConvOptions&);
constexpr Convolution kConv[] = {conv1d, conv2d, conv3d};
constexpr Convolution kTransposed[] = {conv_transpose1d, conv_transpose2d, conv_transpose3d};

Array naive_conv(ConvSetup& c) {
  Array y(joined({c.x.shape[0], c.outputs}, c.result));
  int64_t inner = c.channels / c.options.groups, each = c.outputs / c.options.groups;
  for_each_place(y.shape, [&](const std::vector<int64_t>& at) {
    double total = c.bias.data[static_cast<size_t>(at[1])];
    for_each_place(joined({inner}, c.kernel), [&](const std::vector<int64_t>& k) {
      std::vector<int64_t> from{at[0], at[1] / each * inner + k[0]}, weight{at[1], k[0]};
      for (size_t i = 0; i < c.space; ++i) {
        from.push_back(at[2 + i] * c.options.stride[i] + k[1 + i] * c.options.dilation[i] -
                       c.options.padding[i]);
        weight.push_back(k[1 + i]);
      }
      total += c.x.read(from) * c.weight.at(weight);
    });
    y.at(at) = total;
  });
  return y;
}

}  // namespace

TEST_CASE("tensor: convolutions are the naive loops, transposed ones their adjoints") {
  std::mt19937 random = random_numbers(5);
  for (int round = 0; round < 80; ++round) {
    CAPTURE(round);
    ConvSetup c(random);
    Tensor x = tensor_of(c.x), weight = tensor_of(c.weight), bias = tensor_of(c.bias);
    Tensor y = kConv[c.space - 1](x, weight, bias, c.forward());
    expect_same(y, naive_conv(c));

    // <conv(x), z> = <x, conv_transpose(z)>, which also is the gradient.
    Tensor z = tensor_of(random_array(joined({c.x.shape[0], c.outputs}, c.result), random));
    Tensor back = kTransposed[c.space - 1](z, weight, {}, c.options);
    REQUIRE(to_text(back.shape()) == to_text(x.shape()));
    Array gradient(c.x.shape);
    gradient.data = grad(y, {x}, {.seed = z})[0].to_vector<double>();
    expect_same(back, gradient);
    Tensor plain = kConv[c.space - 1](x, weight, {}, c.forward());
    CHECK(close(sum(plain * z).item(), sum(x * back).item(), kTolerance));

    // The other way round: the gradients of the transposed one are convolutions.
    auto array_of = [](const Tensor& tensor, const Array& like) {
      Array array(like.shape);
      array.data = tensor.to_vector<double>();
      return array;
    };
    std::vector<Tensor> parts = grad(back, {z, weight}, {.seed = x});
    expect_same(plain, array_of(parts[0], naive_conv(c)));
    Tensor of_weight = grad(plain, {weight}, {.seed = z})[0];
    expect_same(of_weight, array_of(parts[1], c.weight));
  }
}

TEST_CASE("tensor: more output padding than stride has its gradients too") {
  Tensor x = constant({2, 2, 4}), w = constant({2, 3, 2});
  Tensor y = conv_transpose1d(
      x, w, {}, {.stride = {2}, .padding = {1}, .dilation = {5}, .output_padding = {4}});
  CHECK(to_text(y.shape()) == "[2, 3, 14]");
  Tensor seed = constant({2, 3, 14});
  std::vector<Tensor> parts = grad(y, {x, w}, {.seed = seed});
  // Of a form that is linear in each.
  const double value = sum(y * seed).item();
  CHECK(close(sum(x * parts[0]).item(), value, kTolerance));
  CHECK(close(sum(w * parts[1]).item(), value, kTolerance));
}

TEST_CASE("tensor: a transposed convolution with a bias, and padding beyond the kernel") {
  Tensor x = constant({1, 2, 4}), w = constant({2, 3, 1}), b = constant({3});
  Tensor plain = conv_transpose1d(x, w, {}, {.stride = {3}, .output_padding = {2}});
  CHECK(to_text(plain.shape()) == "[1, 3, 12]");
  Tensor cut = conv_transpose1d(x, w, b, {.stride = {3}, .padding = {2}, .output_padding = {2}});
  Tensor wanted = slice(plain, {{}, {}, {2, 10}}) + reshape(b, {3, 1});
  CHECK(cut.to_vector<double>() == wanted.to_vector<double>());
}

TEST_CASE("tensor: products and convolutions are one product and one sum over the last axes") {
  struct Row {
    Tensor result;
    size_t rank, summed;
  };
  const Row rows[] = {
      {matmul(constant({2, 3}), constant({3, 4})), 3, 1},
      {matmul(constant({5, 2, 3}), constant({3, 4})), 4, 1},
      {einsum("bqhd,bkhd->bhqk", {constant({2, 3, 2, 4}), constant({2, 5, 2, 4})}), 5, 1},
      {conv2d(constant({2, 4, 5, 5}), constant({6, 2, 3, 3}), {}, {.groups = 2}), 8, 3},
      {conv1d(constant({2, 4, 5}), constant({6, 4, 3})), 6, 2},
  };
  for (const Row& row : rows) {
    CAPTURE(to_text(row.result.shape()));
    NodeRef node = row.result.node();
    while (node->op == Op::Reshape || node->op == Op::Permute || node->op == Op::CustomGrad)
      node = node->source(0);
    REQUIRE(node->op == Op::ReduceSum);
    CHECK(node->rank() == row.rank);
    CHECK(node->axes().size() == row.summed);
    CHECK(node->axes().front() == static_cast<int64_t>(row.rank - row.summed));
    CHECK(node->source(0)->op == Op::Mul);
  }
}

TEST_CASE("tensor: pools and unfold are the naive loops") {
  std::mt19937 random = random_numbers(6);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    size_t space = static_cast<size_t>(pick(random, 1, 3));
    PoolOptions options{{}, {}, {}, pick(random, 0, 1) == 1};
    std::vector<int64_t> kernel, shape{2, 2}, windows;
    for (size_t i = 0; i < space; ++i) {
      int64_t k = pick(random, 1, 3), s = pick(random, 1, 4), d = pick(random, 1, 2);
      int64_t extent = d * (k - 1) + 1, p = pick(random, 0, extent / 2);
      // Long enough that no dilated window steps over the whole axis.
      int64_t size = extent + pick(random, 0, 3);
      kernel.push_back(k);
      options.stride.push_back(s);
      options.padding.push_back(p);
      options.dilation.push_back(d);
      shape.push_back(size);
      windows.push_back((size + 2 * p - extent) / s + 1);
    }
    Array x = random_array(shape, random);
    Array largest(joined({2, 2}, windows)), average(largest.shape);
    int64_t columns = 1, elements = 1;
    for (int64_t count : windows) columns *= count;
    for (int64_t k : kernel) elements *= k;
    Array unfolded({2, 2 * elements, columns});
    for_each_place(largest.shape, [&](const std::vector<int64_t>& at) {
      double most = -kInf, total = 0, inside = 0;
      int64_t column = 0, row = 0;
      for (size_t i = 0; i < space; ++i) column = column * windows[i] + at[2 + i];
      for_each_place(kernel, [&](const std::vector<int64_t>& k) {
        std::vector<int64_t> from{at[0], at[1]};
        bool valid = true;
        for (size_t i = 0; i < space; ++i) {
          from.push_back(at[2 + i] * options.stride[i] + k[i] * options.dilation[i] -
                         options.padding[i]);
          valid = valid && from.back() >= 0 && from.back() < shape[2 + i];
        }
        unfolded.at({at[0], at[1] * elements + row++, column}) = x.read(from);
        if (!valid) return;
        most = std::max(most, x.at(from));
        total += x.at(from);
        ++inside;
      });
      largest.at(at) = most;
      average.at(at) = total / (options.count_padding ? static_cast<double>(elements) : inside);
    });
    Tensor data = tensor_of(x);
    expect_same(max_pool(data, kernel, options), largest, 0);
    expect_same(avg_pool(data, kernel, options), average);
    expect_same(unfold(data, kernel, options), unfolded, 0);
  }
}

TEST_CASE("tensor: adaptive pools are the naive loops") {
  std::mt19937 random = random_numbers(7);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    size_t space = static_cast<size_t>(pick(random, 1, 3));
    std::vector<int64_t> sizes, shape{2};
    for (size_t i = 0; i < space; ++i) {
      sizes.push_back(pick(random, 1, 5));
      shape.push_back(pick(random, 1, 8));
    }
    Array x = random_array(shape, random), most(joined({2}, sizes)), average(most.shape);
    for_each_place(most.shape, [&](const std::vector<int64_t>& at) {
      std::vector<int64_t> begin, length;
      for (size_t i = 0; i < space; ++i) {
        int64_t n = shape[1 + i], o = at[1 + i], parts = sizes[i];
        begin.push_back(o * n / parts);
        length.push_back(((o + 1) * n + parts - 1) / parts - begin.back());
      }
      double total = 0, count = 0, largest = -kInf;
      for_each_place(length, [&](const std::vector<int64_t>& k) {
        std::vector<int64_t> from{at[0]};
        for (size_t i = 0; i < space; ++i) from.push_back(begin[i] + k[i]);
        largest = std::max(largest, x.at(from));
        total += x.at(from);
        ++count;
      });
      most.at(at) = largest;
      average.at(at) = total / count;
    });
    expect_same(adaptive_max_pool(tensor_of(x), sizes), most, 0);
    expect_same(adaptive_avg_pool(tensor_of(x), sizes), average);
  }
}

namespace {

struct EinsumRow {
  std::string equation;
  std::vector<std::vector<int64_t>> shapes;
  const char* expanded;  // with letters for "..." and an explicit result; null: as written
};

// Every letter is a loop; an operand's axis of size 1 stays at 0.
Array naive_einsum(const std::string& equation, std::vector<Array>& operands) {
  std::vector<std::string> terms{""};
  size_t arrow = equation.find("->");
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else if (c != ' ')
      terms.back() += c;
  }
  std::string output, letters;
  for (char c : equation.substr(arrow + 2))
    if (c != ' ') output += c;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t axis = 0; axis < terms[i].size(); ++axis)
      sizes[terms[i][axis]] = std::max(sizes[terms[i][axis]], operands[i].shape[axis]);
  std::vector<int64_t> all, shape;
  for (const auto& [letter, size] : sizes) {
    letters += letter;
    all.push_back(size);
  }
  for (char c : output) shape.push_back(sizes[c]);
  Array result(shape);
  for_each_place(all, [&](const std::vector<int64_t>& loop) {
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) {
      std::vector<int64_t> place;
      for (size_t axis = 0; axis < terms[i].size(); ++axis)
        place.push_back(operands[i].shape[axis] == 1 ? 0 : loop[letters.find(terms[i][axis])]);
      product *= operands[i].at(place);
    }
    std::vector<int64_t> place;
    for (char c : output) place.push_back(loop[letters.find(c)]);
    result.at(place) += product;
  });
  return result;
}

}  // namespace

TEST_CASE("tensor: einsum is the naive loops") {
  const std::vector<EinsumRow> rows{
      {"i->i", {{3}}, nullptr},
      {"i->", {{3}}, nullptr},
      {"i", {{3}}, "i->i"},
      {"ba", {{2, 3}}, "ba->ab"},
      {"ij->ji", {{2, 3}}, nullptr},
      {"ii", {{3, 3}}, "ii->"},
      {"ii->i", {{3, 3}}, nullptr},
      {"iji->j", {{3, 2, 3}}, nullptr},
      {"iij->ji", {{3, 3, 2}}, nullptr},
      {"iii->i", {{2, 2, 2}}, nullptr},
      {"ijij->ij", {{2, 3, 2, 3}}, nullptr},
      {"ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"},
      {"ij,kj->ki", {{2, 3}, {4, 3}}, nullptr},
      {" i j , j k -> i k ", {{2, 3}, {3, 4}}, nullptr},
      {"i,j->", {{2}, {3}}, nullptr},
      {"i,i->i", {{3}, {3}}, nullptr},
      {"i,i", {{3}, {3}}, "i,i->"},
      {"ij,j->ij", {{2, 3}, {3}}, nullptr},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 2}}, nullptr},
      {"bhqd,bhkd->bhqk", {{1, 2, 3, 4}, {1, 2, 5, 4}}, nullptr},
      {"ij,kl->jl", {{2, 3}, {4, 2}}, nullptr},
      {"ii,ij->j", {{3, 3}, {3, 2}}, nullptr},
      {"ij,ijk,k->", {{2, 3}, {2, 3, 4}, {4}}, nullptr},
      {"ab,bc,cd,de->ae", {{2, 3}, {3, 2}, {2, 4}, {4, 2}}, nullptr},
      {"a,b,a->b", {{2}, {3}, {2}}, nullptr},
      {"aB,Ba->B", {{2, 3}, {3, 2}}, nullptr},
      {",i->i", {{}, {3}}, nullptr},
      {"...->...", {{2, 3}}, "ab->ab"},
      {"...", {{2, 3}}, "ab->ab"},
      {"...i->...", {{2, 3, 4}}, "abi->ab"},
      {"i...->...i", {{2, 3, 4}}, "iab->abi"},
      {"...ij->ij...", {{2, 3, 4}}, "aij->ija"},
      {"...ij,...jk->...ik", {{2, 3, 4}, {2, 4, 2}}, "aij,ajk->aik"},
      {"...ij,...jk", {{5, 1, 3, 4}, {2, 4, 2}}, "abij,bjk->abik"},
      {"...i,...i->...", {{4, 1, 3}, {2, 3}}, "abi,bi->ab"},
      {"...i,...i->", {{1, 3}, {2, 3}}, "ai,ai->"},
      {"...i,j...->ij", {{2, 3}, {4, 2}}, "ai,ja->ij"},
      {"...i,i->...", {{3}, {3}}, "i,i->"},
      {"b...,...,b->...", {{2, 3}, {3}, {2}}, "ba,a,b->a"},
      {"...ii->...i", {{2, 3, 3}}, "aii->ai"},
  };
  std::mt19937 random = random_numbers(8);
  for (const EinsumRow& row : rows) {
    CAPTURE(row.equation);
    std::vector<Array> operands;
    std::vector<Tensor> tensors;
    for (const std::vector<int64_t>& shape : row.shapes) {
      operands.push_back(random_array(shape, random));
      tensors.push_back(tensor_of(operands.back()));
    }
    expect_same(einsum(row.equation, tensors),
                naive_einsum(row.expanded ? row.expanded : row.equation, operands));
  }
  CHECK(einsum("ij,j", {of({2, 3}, DType::I8), of({3}, DType::I32)}).dtype() == DType::I32);
  CHECK(einsum("i,i", {of({3}, DType::Bool), of({3}, DType::Bool)}).dtype() == DType::I32);
  CHECK(matmul(of({2, 3}, DType::F16), of({3}, DType::F16)).dtype() == DType::F16);
}
