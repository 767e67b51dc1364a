// Derivatives as users meet them: options, errors, custom rules, depth. That each rule is right is
// the table of op cases' to show.
#include <cmath>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "ir/graph.h"
#include "transform/derivative.h"

using namespace anneal;

namespace {

template <typename Function>
UserError error_of(Function function) {
  try {
    function();
  } catch (const UserError& error) {
    return error;
  }
  FAIL("no error");
  return UserError("", "", {});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensor x2() { return tensor({1.0, -2.0}); }

}  // namespace

TEST_CASE("grad: every op that carries floats has both rules, or is known to have none") {
  for (int i = 0; i < kTensorOpCount; ++i) {
    Op op = static_cast<Op>(i);
    const OpInfo& row = info(op);
    bool carries_floats =
        row.sources > 0 && (row.accepts & kFloatClass) && row.type != TypeRule::Bool;
    CAPTURE(row.text);
    if (op == Op::Bitcast) {  // bits have no derivative: an error, not zeros
      CHECK(gradient_rule(op) == nullptr);
      CHECK(forward_rule(op) == nullptr);
    } else if (op == Op::CustomGrad) {  // the user's function is the reverse rule
      CHECK(gradient_rule(op) == nullptr);
      CHECK(forward_rule(op) != nullptr);
    } else {
      CHECK((gradient_rule(op) != nullptr) == carries_floats);
      CHECK((forward_rule(op) != nullptr) == carries_floats);
    }
  }
}

TEST_CASE("grad: what the loss does not depend on is named") {
  Tensor used = parameter("used", x2()), spare = parameter("head.bias", x2());
  UserError error = error_of([&] { grad(sum(used * used), {used, spare}); });
  CHECK(contains(error.message(), "does not depend on parameter \"head.bias\""));
  CHECK(contains(error.hint(), "allow_unused"));
  std::vector<Tensor> gradients = grad(sum(used * used), {used, spare}, {.allow_unused = true});
  CHECK(gradients[0].to_vector<double>() == std::vector<double>{2, -4});
  CHECK(gradients[1].to_vector<double>() == std::vector<double>{0, 0});
}

TEST_CASE("grad: mistakes") {
  Tensor x = parameter("x", x2()), labels = tensor({1, 2});
  CHECK(contains(error_of([&] { grad(x * 2, {x}); }).message(), "the loss has the shape [2]"));
  CHECK(
      contains(error_of([&] { grad(sum(labels), {x}); }).message(), "i32, which has no gradient"));
  CHECK(contains(error_of([&] { grad(sum(x * labels), {labels}); }).message(), "is i32"));
  CHECK(contains(error_of([&] { grad(x * 2, {x}, {.seed = ones({3}, DType::F64)}); }).message(),
                 "the seed is f64[3]"));
  CHECK(contains(error_of([&] { jvp({x}, {x}, {}); }).message(), "1 inputs and 0 tangents"));
  CHECK(contains(error_of([&] { jvp({x}, {x}, {ones({2})}); }).message(), "its tangent is f32[2]"));
}

TEST_CASE("grad: a missing rule names the op and the user's line") {
  Tensor x = parameter("x", tensor({1.0f}));
  Tensor bits = bitcast(cast(x, DType::F16), DType::BF16);
  unsigned line = __LINE__ - 1;
  UserError error = error_of([&] { grad(sum(cast(bits, DType::F32)), {x}); });
  CHECK(contains(error.message(), "bitcast has no gradient rule, made by bitcast at grad_test.cc:" +
                                      std::to_string(line)));
  CHECK(contains(error.hint(), "stop_gradient"));
  error = error_of([&] { jvp({cast(bits, DType::F32)}, {x}, {ones_like(x)}); });
  CHECK(contains(error.message(), "bitcast has no forward rule"));
}

TEST_CASE("grad: stop_gradient stops, and seeds scale") {
  Tensor x = parameter("x", x2());
  CHECK(grad(sum(x * stop_gradient(x)), {x})[0].to_vector<double>() == std::vector<double>{1, -2});
  CHECK(grad(x * x, {x}, {.seed = tensor({10.0, 1.0})})[0].to_vector<double>() ==
        std::vector<double>{20, -4});
  CHECK(jvp({x * stop_gradient(x)}, {x}, {ones_like(x)})[0].to_vector<double>() ==
        std::vector<double>{1, -2});
}

TEST_CASE("grad: of intermediate tensors, several at once") {
  Tensor x = parameter("x", x2());
  Tensor h = x * x, loss = sum(h * h + h);
  std::vector<Tensor> gradients = grad(loss, {x, h});
  CHECK(gradients[1].to_vector<double>() == std::vector<double>{3, 9});
  CHECK(gradients[0].to_vector<double>() == std::vector<double>{6, -36});
}

TEST_CASE("grad: any order") {
  Tensor x = parameter("x", tensor({0.7}));
  Tensor y = sum(sin(x));
  for (int order = 1; order <= 6; ++order) y = sum(grad(y, {x})[0]);
  CHECK(y.item() == doctest::Approx(-std::sin(0.7)));
}

TEST_CASE("grad: a Hessian-vector product of a network with gather and max") {
  Generator random(7);
  Tensor table = parameter("table", random.normal({5, 4}, 0, 1, DType::F64));
  Tensor weight = parameter("weight", random.normal({4, 3}, 0, 1, DType::F64));
  Tensor index = tensor({0, 3, 3, 1});
  auto loss_of = [&](const Tensor& w) {
    return sum(square(max(tanh(matmul(index_select(table, index), w)), 1)));
  };
  Tensor direction = random.normal({4, 3}, 0, 1, DType::F64).realize();
  // Forward over reverse, reverse over reverse, and differences of gradients.
  Tensor gradient = grad(loss_of(weight), {weight})[0];
  std::vector<double> forward = jvp({gradient}, {weight}, {direction})[0].to_vector<double>();
  std::vector<double> reverse = grad(sum(gradient * direction), {weight})[0].to_vector<double>();
  double h = 1e-5;
  auto gradient_at = [&](double t) {
    Tensor moved = (weight + direction * t).realize();
    return grad(loss_of(moved), {moved})[0].to_vector<double>();
  };
  std::vector<double> ahead = gradient_at(h), behind = gradient_at(-h);
  for (size_t i = 0; i < forward.size(); ++i) {
    CHECK(forward[i] == doctest::Approx(reverse[i]).epsilon(1e-10));
    CHECK(forward[i] == doctest::Approx((ahead[i] - behind[i]) / (2 * h)).epsilon(1e-6));
  }
}

TEST_CASE("grad: custom gradients replace what was computed") {
  Tensor x = parameter("x", x2());
  // Straight-through rounding: the value is rounded, the gradient passes.
  auto straight = [](const Tensor& t) {
    return custom_gradient(round(t * 3) / 3, {t},
                           [](const Tensor& g) { return std::vector<Tensor>{g * 5}; });
  };
  Tensor y = sum(straight(x) * x);
  CHECK(grad(y, {x})[0].to_vector<double>() == std::vector<double>{1 + 5 * 1.0, -2 + 5 * -2.0});
  // The function survives a collection together with its node.
  current_graph().collect();
  CHECK(grad(y, {x})[0].to_vector<double>() == std::vector<double>{6, -12});
  Tensor wrong =
      sum(custom_gradient(x * 2, {x}, [](const Tensor&) { return std::vector<Tensor>{}; }));
  CHECK(contains(error_of([&] { grad(wrong, {x}); }).message(), "answered 0 tensors for 1 inputs"));
  Tensor shape =
      sum(custom_gradient(x * 2, {x}, [](const Tensor& g) { return std::vector<Tensor>{sum(g)}; }));
  CHECK(contains(error_of([&] { grad(shape, {x}); }).message(), "it should be f64[2]"));
}

TEST_CASE("grad: ties share, flat places are zero") {
  Tensor x = parameter("x", tensor({2.0, 2.0, 1.0}));
  CHECK(grad(max(x), {x})[0].to_vector<double>() == std::vector<double>{0.5, 0.5, 0});
  CHECK(grad(sum(maximum(x, 2)), {x})[0].to_vector<double>() == std::vector<double>{0.5, 0.5, 0});
  CHECK(grad(sum(relu(x - 2)), {x})[0].to_vector<double>() == std::vector<double>{0, 0, 0});
  CHECK(grad(sum(clamp(x, 1, 2)), {x})[0].to_vector<double>() == std::vector<double>{1, 1, 1});
  CHECK(grad(sum(floor(x)), {x})[0].to_vector<double>() == std::vector<double>{0, 0, 0});
  CHECK(grad(sum(sign(x)), {x})[0].to_vector<double>() == std::vector<double>{0, 0, 0});
  Tensor with_zero = parameter("z", tensor({3.0, 0.0, 5.0}));
  CHECK(grad(sum(abs(with_zero)), {with_zero})[0].to_vector<double>() ==
        std::vector<double>{1, 0, 1});
  CHECK(grad(prod(with_zero), {with_zero})[0].to_vector<double>() == std::vector<double>{0, 15, 0});
}

TEST_CASE("grad: slopes of atan2 are NaN at the origin, as those of peers, and nowhere else") {
  Tensor y = parameter("y", tensor({0.0, 0.0, 1e-10})),
         x = parameter("x", tensor({0.0, -2.0, 0.0}));
  const std::vector<Tensor> slopes = grad(sum(atan2(y, x)), {y, x});
  const std::vector<double> down = slopes[0].to_vector<double>(),
                            across = slopes[1].to_vector<double>();
  CHECK((std::isnan(down[0]) && std::isnan(across[0])));
  CHECK((down[1] == -0.5 && across[1] == 0));
  CHECK((down[2] == 0 && std::fabs(across[2] * 1e-10 + 1) < 1e-6));
  const std::vector<double> forward =
      jvp({atan2(y, x)}, {y}, {ones_like(y)})[0].to_vector<double>();
  CHECK((std::isnan(forward[0]) && forward[1] == -0.5));
}

TEST_CASE("grad: tangents at ties") {
  Tensor x = parameter("x", tensor({2.0, 2.0, 1.0})), two = full_like(x, 2);
  Tensor dx = tensor({1.0, 10.0, 100.0});
  CHECK(jvp({maximum(x, two)}, {x}, {dx})[0].to_vector<double>() == std::vector<double>{0.5, 5, 0});
  CHECK(jvp({maximum(two, x)}, {x}, {dx})[0].to_vector<double>() == std::vector<double>{0.5, 5, 0});
  CHECK(jvp({minimum(x, two)}, {x}, {dx})[0].to_vector<double>() ==
        std::vector<double>{0.5, 5, 100});
  CHECK(jvp({minimum(two, x)}, {x}, {dx})[0].to_vector<double>() ==
        std::vector<double>{0.5, 5, 100});
  CHECK(jvp({max(x)}, {x}, {dx})[0].item() == 5.5);
  CHECK(grad(sum(maximum(two, x)), {x})[0].to_vector<double>() == std::vector<double>{0.5, 0.5, 0});
  CHECK(grad(sum(minimum(x, two)), {x})[0].to_vector<double>() == std::vector<double>{0.5, 0.5, 1});
  CHECK(grad(sum(minimum(two, x)), {x})[0].to_vector<double>() == std::vector<double>{0.5, 0.5, 1});
}

TEST_CASE("grad: a cast passes derivatives on in the other dtype") {
  Tensor x = parameter("x", tensor({1.0f, 2.0f}));
  Tensor y = cast(x, DType::F64) * 3.0;
  Tensor gradient = grad(sum(y), {x})[0];
  CHECK(gradient.dtype() == DType::F32);
  CHECK(gradient.to_vector() == std::vector<float>{3, 3});
  Tensor tangent = jvp({y}, {x}, {tensor({1.0f, -2.0f})})[0];
  CHECK(tangent.dtype() == DType::F64);
  CHECK(tangent.to_vector<double>() == std::vector<double>{3, -6});
}

TEST_CASE("grad: symbolic sizes") {
  Variable n("n", 1, 10);
  Tensor x = input("x", {n, 2}, DType::F64);
  Tensor gradient = grad(mean(square(x)), {x})[0];
  CHECK(to_text(gradient.shape()) == "[n, 2]");
  Tensor two = tensor({1.0, 2.0, 3.0, 4.0}, {2, 2}), one = tensor({1.0, 2.0}, {1, 2});
  CHECK(gradient.to_vector<double>({.sizes = {{n, 2}}, .inputs = {{x, two}}}) ==
        std::vector<double>{0.5, 1, 1.5, 2});
  CHECK(gradient.to_vector<double>({.sizes = {{n, 1}}, .inputs = {{x, one}}}) ==
        std::vector<double>{1, 2});
}

TEST_CASE("grad: a chain of 100,000 operations") {
  Tensor x = parameter("x", tensor({0.5}));
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y * 1.00001;
  CHECK(grad(sum(y), {x})[0].item() == doctest::Approx(std::pow(1.00001, 100000)));
  CHECK(jvp({y}, {x}, {ones_like(x)})[0].item() == doctest::Approx(std::pow(1.00001, 100000)));
}
