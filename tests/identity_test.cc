// Which tensors derivatives tell apart: what a function of creation returns is a value of its own,
// named() makes one, and neither costs a kernel, a compile or equal keys.
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "error_text.h"
#include "ir/graph.h"
#include "runtime/program/canonical_program.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

using Row = std::vector<double>;

Row values(const Tensor& x) { return x.to_vector<double>(); }

Tensor slope(const Tensor& loss, const Tensor& x) { return grad(loss, {x})[0]; }

// What the program of a tensor is looked up and compiled by.
std::vector<uint32_t> words_of(const Tensor& x) {
  const Contents contents{Bindings{}};
  return CanonicalProgram(Request{{x.node()}, {}, &contents}).words();
}

// A function of creation, and the value of every element of [2].
struct Creation {
  const char* name;
  Tensor (*make)();
  Row values;
};

const std::vector<Creation>& creations() {
  static const std::vector<Creation> rows{
      {"zeros", [] { return zeros({2}, DType::F64); }, {0, 0}},
      {"ones", [] { return ones({2}, DType::F64); }, {1, 1}},
      {"full", [] { return full({2}, 2, DType::F64); }, {2, 2}},
      {"zeros_like", [] { return zeros_like(zeros({2}, DType::F64)); }, {0, 0}},
      {"ones_like", [] { return ones_like(zeros({2}, DType::F64)); }, {1, 1}},
      {"full_like", [] { return full_like(zeros({2}, DType::F64), 2); }, {2, 2}},
      {"arange", [] { return arange(2, DType::F64); }, {0, 1}},
      {"arange cast", [] { return arange(2).cast(DType::F64); }, {0, 1}},
      {"arange step", [] { return arange(1, 3, 1, DType::F64); }, {1, 2}},
      {"eye", [] { return eye(1, Dim(2), DType::F64).reshape({2}); }, {1, 0}},
      {"from_dim", [] { return from_dim(2, DType::F64).expand({2}); }, {2, 2}},
      {"number of a Variable's size",
       [] { return from_dim(1, DType::F64) * ones({2}, DType::F64); },
       {1, 1}},
      {"uniform", [] { return Generator(7).uniform({2}, 2, 2, DType::F64); }, {2, 2}},
      {"normal", [] { return Generator(7).normal({2}, 1, 0, DType::F64); }, {1, 1}},
      {"integers", [] { return Generator(7).integers({2}, 3, 4).cast(DType::F64); }, {3, 3}},
      {"stop_gradient", [] { return stop_gradient(ones({2}, DType::F64) * 0); }, {0, 0}},
  };
  return rows;
}

}  // namespace

// ---- creation

TEST_CASE("identity: every function of creation returns a value of its own") {
  for (const Creation& row : creations()) {
    CAPTURE(row.name);
    Tensor a = row.make(), b = row.make();
    CHECK(a.node() != b.node());
    // d(a a b) is 2 a b, a a; literals of the same value are neither.
    Tensor loss = sum(a * a * b + a * 0 + b * 1 + a * 2 + b * 3);
    const std::vector<Tensor> slopes = grad(loss, {a, b});
    Row da, db, tangent;
    for (double v : row.values) {
      da.push_back(2 * v * v + 2);
      db.push_back(v * v + 4);
      tangent.push_back(10 * (2 * v * v + 2) + v * v + 4);
    }
    CHECK(values(a) == row.values);
    CHECK(values(slopes[0]) == da);
    CHECK(values(slopes[1]) == db);
    Tensor ten = full({2}, 10, DType::F64), one = ones({2}, DType::F64);
    Tensor moving = a * a * b + a * 0 + b * 1 + a * 2 + b * 3;
    CHECK(values(jvp({moving}, {a, b}, {ten, one})[0]) == tangent);
  }
}

TEST_CASE("identity: literals inside of library functions are not the user's tensor") {
  Tensor one = ones({3}), zero = zeros({3}, DType::F64);
  CHECK(values(slope(sum(1 / one), one)) == Row{-1, -1, -1});
  CHECK(values(jvp({1 / one}, {one}, {ones_like(one)})[0]) == Row{-1, -1, -1});
  CHECK(values(slope(sum(where(zero == 0, 3 * zero, 0)), zero)) == Row{3, 3, 3});
}

TEST_CASE("identity: functions at zeros have the derivatives they have at data that is zero") {
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions{
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"softmax", [](const Tensor& x) { return square(softmax(x)); }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x, -1); }},
      {"cross_entropy", [](const Tensor& x) { return cross_entropy(x, tensor({1, 0})); }},
      {"abs", [](const Tensor& x) { return abs(x) + maximum(x, 0) + clamp(x, 0, 1); }},
      {"pow", [](const Tensor& x) { return pow(x + 1, x); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, 1); }},
  };
  const Row nought(6, 0);
  for (const auto& [name, function] : functions) {
    CAPTURE(name);
    Tensor made = zeros({2, 3}, DType::F64), data = from_data(nought, {2, 3});
    Tensor made_slope = slope(sum(function(made)), made),
           data_slope = slope(sum(function(data)), data);
    CHECK(values(made_slope) == values(data_slope));
    CHECK(values(slope(sum(made_slope * made), made)) ==
          values(slope(sum(data_slope * data), data)));
    CHECK(values(jvp({function(made)}, {made}, {ones_like(made)})[0]) ==
          values(jvp({function(data)}, {data}, {ones_like(data)})[0]));
  }
}

TEST_CASE("identity: a first state of zeros is found behind a product") {
  Tensor h0 = zeros({1, 2}, DType::F64), w = tensor({1.0, 2.0, 3.0, 4.0}, {2, 2});
  Tensor x = tensor({0.0, 0.0}, {1, 2});
  Tensor h = h0;
  for (int step = 0; step < 3; ++step) h = tanh(matmul(h, w) + x);
  // At 0 tanh is the identity: the slope is w w w times ones.
  CHECK(values(slope(sum(h), h0)) == Row{91, 199});
}

TEST_CASE("identity: gradients of gradients, seeds and tangents of creation functions") {
  Tensor x = full({2}, 3, DType::F64), seed = ones_like(x);
  Tensor first = grad(x * x * x, {x}, {.seed = seed})[0];  // 3 x x seed
  CHECK(values(first) == Row{27, 27});
  CHECK(values(slope(sum(first), x)) == Row{18, 18});
  CHECK(values(slope(sum(first * first), seed)) == Row{1458, 1458});  // 2 (3 x x)^2
  Tensor tangent = ones_like(x);
  Tensor moved = jvp({x * x * x}, {x}, {tangent})[0];
  CHECK(values(slope(sum(moved * moved), tangent)) == Row{1458, 1458});
  CHECK(values(jvp({first}, {x}, {tangent})[0]) == Row{18, 18});
}

TEST_CASE("identity: a derivative that is constant is a value of its own") {
  Tensor x = tensor({5.0, 6.0}), unused = tensor({7.0});
  Tensor g = slope(sum(x), x);  // ones
  CHECK(values(slope(sum(1 / (g + 1)), g)) == Row{-0.25, -0.25});
  Tensor t = jvp({x + 1}, {x}, {ones_like(x)})[0];
  CHECK(values(slope(sum(1 / (t + 1)), t)) == Row{-0.25, -0.25});
  Tensor none = grad(sum(x), {unused}, {.allow_unused = true})[0];
  CHECK(values(slope(sum(exp(none) + 0 * none), none)) == Row{1});
}

TEST_CASE("identity: a realised tensor is differentiated as it was") {
  Tensor a = ones({2}, DType::F64), b = ones({2}, DType::F64);
  a.realize();
  CHECK(values(grad(sum(a * a * b), {a, b})[0]) == Row{2, 2});
  CHECK(values(grad(sum(a * a * b), {a, b})[1]) == Row{1, 1});
  CHECK(values(b) == Row{1, 1});
}

// ---- named

TEST_CASE("identity: equal expressions are one node, unless they are named") {
  Tensor p = tensor({1.0, 2.0});
  CHECK(exp(p).node() == exp(p).node());
  Tensor a = named(exp(p)), b = named(exp(p), "right");
  CHECK(values(slope(sum(a * b), a)) == values(b));
  CHECK(values(slope(sum(a * b), p)) == values(2 * a * b));
  CHECK(values(jvp({a * b}, {a}, {ones_like(a)})[0]) == values(b));
  CHECK(contains(error_of([&] { jvp({p}, {exp(p), exp(p)}, {p, p}); }),
                 "input 1 is one value with an input before it"));
  CHECK(a.name() == "");
  CHECK(b.name() == "right");
}

TEST_CASE("identity: a reshape of a reshape is built from what was reshaped") {
  Tensor x = tensor({1.0, 2.0, 3.0, 4.0}, {2, 2}), h = x.reshape({4});
  Tensor back = h.reshape({2, 2});
  CHECK(values(slope(sum(h * h) + sum(back * x), h)) == Row{3, 6, 9, 12});
  CHECK(values(slope(sum(back * x), h)) == Row{1, 2, 3, 4});
}

TEST_CASE("identity: what the loss does not depend on is named by its name or its line") {
  Tensor p = tensor({1.0}), spare = zeros({3}, DType::F64);
  const std::string line = std::to_string(__LINE__ - 1);
  CHECK(
      contains(error_of([&] { grad(sum(p), {spare}); }),
               "does not depend on the tensor of [3], made by zeros at identity_test.cc:" + line));
  CHECK(
      contains(error_of([&] { grad(sum(p), {named(p, "left")}); }), "does not depend on \"left\""));
}

// ---- what it costs

TEST_CASE("identity: programs are looked up as if nothing was marked") {
  Tensor x = tensor({1.0, 2.0, 3.0});
  Tensor marked = sum(named(exp(x * full({3}, 2, DType::F64)), "y") + ones({3}, DType::F64));
  CHECK(words_of(marked) == words_of(sum(exp(x * 2) + 1)));
  CHECK(words_of(named(named(x) + 1)) == words_of(x + 1));
  // Built in another order.
  Tensor one = ones({3}, DType::F64), two = full({3}, 2, DType::F64);
  CHECK(words_of(sum(exp(x * two) + one)) == words_of(marked));
}

TEST_CASE("identity: folding and fusion see through it") {
  Tensor x = input("x", {3}, DType::F64);
  const NodeRef marked = (x * ones({3}, DType::F64) * named(full({3}, 2, DType::F64) + 3)).node();
  const NodeRef plain = (x * 5).node();
  CHECK(simplify_program({&marked, 1}) == simplify_program({&plain, 1}));
}

TEST_CASE("identity: a step that makes tensors anew compiles once") {
  Tensor x = parameter("x", tensor({1.0, 2.0, 3.0}));
  auto step = [&] {
    Tensor scale = full({3}, 0.5, DType::F64), h = named(x * scale + zeros({3}, DType::F64));
    return values(grad(sum(h * h), {scale})[0]);
  };
  const Row first = step();
  const Counters before = counters();
  for (int i = 0; i < 3; ++i) CHECK(step() == first);
  const Counters spent = counters() - before;
  CHECK(spent.kernels_scheduled == 0);
  CHECK(spent.kernels_compiled == 0);
  CHECK(first == Row{1, 4, 9});
}

TEST_CASE("identity: functions that make tensors and marks are captured") {
  Tensor w = parameter("w", tensor({1.0, 2.0}));
  auto function = compile([&](const Tensor& x) {
    Tensor h0 = zeros({2}, DType::F64), gain = named(ones({2}, DType::F64), "gain");
    Tensor h = custom_gradient(round(h0 + x * w * gain), {x},
                               [](const Tensor& g) { return std::vector<Tensor>{g}; });
    return sum(grad(sum(h * h), {x})[0]) + sum(stop_gradient(w));
  });
  CHECK(function(tensor({3.0, 4.0})).item() == 2 * (3 + 8) + 3);
  CHECK(function(tensor({1.0, 1.0})).item() == 2 * (1 + 2) + 3);
}
