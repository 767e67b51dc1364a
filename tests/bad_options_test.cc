// Numbers among options that make no sense: each is an error that names it and both values, where
// it is given. Otherwise the first thing to be seen would be a model full of NaN.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "error_text.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Row {
  std::string wanted;
  std::function<void()> call;
};

void expect_errors(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const std::string text = error_of(row.call);
    CHECK_MESSAGE(contains(text, row.wanted),
                  fmt::format("wanted \"{}\", got \"{}\"", row.wanted, text));
    CHECK_MESSAGE(contains(text, "hint"), text);
  }
}

struct Layers : nn::Module {
  nn::BatchNorm norm{this, "norm", 3};
  nn::Linear last{this, "last", 3, 2};
};

}  // namespace

TEST_CASE("bad options: optimizers") {
  const Tensor w = parameter("w", full({2}, 1.0));
  const std::vector<Tensor> list{w};
  std::vector<Row> rows;
  for (double rate : {-1.0, kNan, kInf, -kInf})
    rows.push_back({fmt::format("the learning rate is {}", rate),
                    [=] { optim::Sgd sgd(list, {.lr = rate}); }});
  for (double part : {-0.1, 1.0, kNan}) {
    rows.push_back({fmt::format("sgd: momentum is {}", part),
                    [=] { optim::Sgd sgd(list, {.momentum = part}); }});
    rows.push_back(
        {fmt::format("adam: beta1 is {}", part), [=] { optim::Adam adam(list, {.beta1 = part}); }});
    rows.push_back({fmt::format("adamw: beta2 is {}", part),
                    [=] { optim::AdamW adamw(list, {.beta2 = part}); }});
    rows.push_back(
        {fmt::format("lion: beta2 is {}", part), [=] { optim::Lion lion(list, {.beta2 = part}); }});
  }
  for (double bad : {-1.0, kNan, kInf}) {
    rows.push_back({fmt::format("adam: epsilon is {}", bad),
                    [=] { optim::Adam adam(list, {.epsilon = bad}); }});
    rows.push_back({fmt::format("adamw: the weight decay is {}", bad),
                    [=] { optim::AdamW adamw(list, {.weight_decay = bad}); }});
    rows.push_back({fmt::format("clip_norm is {}", bad),
                    [=] { optim::Sgd sgd(list, {.gradients = {.clip_norm = bad}}); }});
    rows.push_back({fmt::format("the rate of a group is {}", bad),
                    [=] { optim::Sgd sgd(list, {.groups = {{optim::is_vector, bad}}}); }});
    rows.push_back({fmt::format("the weight decay of a group is {}", bad),
                    [=] { optim::Sgd sgd(list, {.groups = {{optim::is_vector, 1, bad}}}); }});
    rows.push_back({fmt::format("the initial loss scale is {}", bad), [=] {
                      optim::Sgd sgd(list, {.gradients = {.loss_scale = {{.initial = bad}}}});
                    }});
    rows.push_back({fmt::format("linear: the learning rate is {}", bad),
                    [=] { optim::linear(0.1, bad, 10); }});
    rows.push_back({fmt::format("cosine: the learning rate is {}", bad),
                    [=] { optim::cosine(bad, 0.1, 10); }});
    rows.push_back({fmt::format("staircase: the learning rate is {}", bad),
                    [=] { optim::staircase(1, bad, 10); }});
    rows.push_back({fmt::format("multi_step: the learning rate is {}", bad),
                    [=] { optim::multi_step(bad, 0.1, {3}); }});
    rows.push_back({fmt::format("table: the learning rate is {}", bad),
                    [=] { optim::table([=](int64_t) { return bad; }, 3); }});
  }
  expect_errors(rows);
  expect_errors({
      {"the loss scale grows by 0.5 and backs off by 0.5",
       [=] { optim::Sgd sgd(list, {.gradients = {.loss_scale = {{.growth = 0.5}}}}); }},
      {"the patience of the loss scale is 0",
       [=] { optim::Sgd sgd(list, {.gradients = {.loss_scale = {{.patience = 0}}}}); }},
      {"ema: the decay is 1.5", [=] { optim::Ema ema(list, 1.5); }},
      {"ema: the decay is nan", [=] { optim::Ema ema(list, kNan); }},
      {"clip_by_norm: a norm of nan", [=] { optim::clip_by_norm({w}, kNan); }},
  });
  // The bounds themselves are allowed; a group without a filter takes all.
  CHECK_NOTHROW(optim::Adam(list, {.lr = 0.0, .beta1 = 0, .epsilon = 0}));
  CHECK_NOTHROW(optim::Sgd(list, {.groups = {{{}, 0.5}}}));
}

TEST_CASE("bad options: the parameters of an optimizer") {
  const Tensor a = parameter("a", full({2}, 1.0)), b = parameter("b", full({2}, 1.0)),
               other = parameter("a", full({2}, 2.0));
  expect_errors({
      {"sgd: parameter \"a\" is listed twice", [=] { optim::Sgd sgd(std::vector{a, b, a}); }},
      {"sgd: parameter \"second\" is listed twice, also as \"first\"",
       [=] { optim::Sgd sgd(std::vector<nn::Parameter>{{"first", a}, {"second", a}}); }},
      {"adam: two parameters have the name \"a\"",
       [=] { optim::Adam adam(std::vector{a, b, other}); }},
      {"ema: two parameters have the name \"a\"",
       [=] { optim::Ema ema(std::vector{a, other}, 0.9); }},
      {"[2] is computed, and cannot be changed", [=] { optim::Sgd sgd(std::vector{a * 2}); }},
  });
}

TEST_CASE("bad options: an update by gradients that nobody accumulated") {
  const Tensor w = parameter("w", full({2}, 1.0));
  const optim::GradientOptions keeps{.accumulate = true};
  optim::Sgd fresh(std::vector{w}, {.gradients = keeps});
  expect_errors({{"update_accumulated: nothing was accumulated", [&] {
                    Step step;
                    fresh.update_accumulated();
                  }}});

  // Where it turns out when the step runs, nothing changes, and what is kept later counts.
  optim::Sgd sgd(std::vector{w}, {.lr = 0.5, .gradients = keeps});
  auto recorded = [](auto record_changes) {
    Step step;
    record_changes();
    return step.updates();
  };
  const std::vector<Tensor> keep = recorded([&] { sgd.accumulate(sum(w * w)); }),
                            apply = recorded([&] { sgd.update_accumulated(); });
  evaluate(apply);
  CHECK(w.to_vector() == std::vector{1.0F, 1.0F});
  CHECK(sgd.steps().item<int>() == 0);
  evaluate(keep);
  evaluate(apply);
  CHECK(w.to_vector() == std::vector{0.0F, 0.0F});
  CHECK(sgd.steps().item<int>() == 1);
}

TEST_CASE("bad options: batch norm learns nothing from one value a channel") {
  Layers layers;
  expect_errors({
      {"x is [1, 3]: 1 value a channel, which has no variance",
       [&] {
         Step step;
         layers.norm(zeros({1, 3}));
       }},
      {"x is [1, 3, 1, 1]: 1 value a channel",
       [&] {
         Step step;
         layers.norm(zeros({1, 3, 1, 1}));
       }},
      {"x is [0, 3]: 0 values a channel",
       [&] {
         Step step;
         layers.norm(zeros({0, 3}));
       }},
  });
  {
    Step pixels;
    CHECK_NOTHROW(layers.norm(zeros({1, 3, 2, 2})));
  }

  // A symbolic batch may turn out to be one example: the running variance stays finite.
  Variable n("n", 1, 8);
  Tensor x = input("x", {n, 3});
  Step step;
  Tensor y = layers.norm(x);
  step.evaluate({y}, {.sizes = {{n, 1}}, .inputs = {{x, ones({1, 3})}}});
  for (float variance : layers.norm.running_var.to_vector()) CHECK(variance == 1);
  step.evaluate({y}, {.sizes = {{n, 2}}, .inputs = {{x, eye(2, 3)}}});
  for (float variance : layers.norm.running_var.to_vector()) CHECK(variance < 1);

  layers.eval();
  CHECK_NOTHROW(layers.norm(zeros({1, 3})));
  expect_errors({{"momentum is -1", [] {
                    nn::Module root;
                    nn::BatchNorm(&root, "norm", 3, {.momentum = -1});
                  }}});
}

TEST_CASE("bad options: functions, layers and random numbers") {
  const Tensor x = zeros({2, 4});
  std::vector<Row> rows;
  for (double bad : {kNan, kInf}) {
    rows.push_back({fmt::format("leaky_relu: the slope is {}", bad), [=] { leaky_relu(x, bad); }});
    rows.push_back({fmt::format("elu: alpha is {}", bad), [=] { elu(x, bad); }});
    rows.push_back(
        {fmt::format("layer_norm: epsilon is {}", bad), [=] { layer_norm(x, 1, {}, {}, bad); }});
    rows.push_back({fmt::format("rotary: the base is {}", bad), [=] { nn::rotary(x, bad); }});
    rows.push_back(
        {fmt::format("uniform: the upper bound is {}", bad), [=] { uniform({2}, 0, bad); }});
    rows.push_back({fmt::format("normal: the deviation is {}", bad),
                    [=] { generator().normal({2}, 0, bad); }});
    rows.push_back(
        {fmt::format("normal: the mean is {}", bad), [=] { generator().normal({2}, bad, 1); }});
    rows.push_back(
        {fmt::format("the deviation is {}", bad), [=] { nn::init::trunc_normal(0, bad); }});
    rows.push_back(
        {fmt::format("the slope is {}", bad), [=] { nn::init::kaiming_normal({.slope = bad}); }});
    rows.push_back({fmt::format("the gain is {}", bad), [=] { nn::init::xavier_uniform(bad); }});
  }
  rows.push_back({"normal: the deviation is -1", [] { generator().normal({2}, 0, -1); }});
  rows.push_back({"rotary: the base is 0", [=] { nn::rotary(x, 0); }});
  rows.push_back({"dropout: the rate is 1", [] {
                    nn::Module root;
                    nn::Dropout(&root, "dropout", 1);
                  }});
  const int64_t least = std::numeric_limits<int64_t>::min();
  rows.push_back({"integers: no integers from", [=] { randint({2}, least, 1 << 20, DType::I64); }});
  expect_errors(rows);
}

TEST_CASE("bad options: a number that is no dtype") {
  const DType none = static_cast<DType>(99);
  const std::vector<std::byte> bytes(4);
  nn::Module root;
  expect_errors({
      {"full: DType(99) is no dtype", [=] { full({1}, 0, none); }},
      {"zeros: DType(99) is no dtype", [=] { zeros({1}, none); }},
      {"ones: DType(99) is no dtype", [=] { ones({1}, none); }},
      {"arange: DType(99) is no dtype", [=] { arange(3, none); }},
      {"arange: DType(99) is no dtype", [=] { arange(0, 3, 1, none); }},
      {"eye: DType(99) is no dtype", [=] { eye(3, {}, none); }},
      {"from_dim: DType(99) is no dtype", [=] { from_dim(3, none); }},
      {"input: DType(99) is no dtype", [=] { input("x", {1}, none); }},
      {"from_data: DType(99) is no dtype", [=] { from_bytes(bytes, {1}, none); }},
      {"cast: DType(99) is no dtype", [=] { zeros({1}).cast(none); }},
      {"bitcast: DType(99) is no dtype", [=] { bitcast(zeros({1}), none); }},
      {"one_hot: DType(99) is no dtype", [=] { one_hot(tensor({1}), 3, none); }},
      {"uniform: DType(99) is no dtype", [=] { rand({1}, none); }},
      {"normal: DType(99) is no dtype", [=] { randn({1}, none); }},
      {"integers: DType(99) is no dtype", [=] { randint({1}, 0, 3, none); }},
      {"compute_in: DType(99) is no dtype", [&] { root.compute_in(none); }},
      {"DType(99) is no dtype", [&] { nn::Linear(&root, "a", 2, 2, {.dtype = none}); }},
      {"DType(99) is no dtype", [&] { nn::LayerNorm(&root, "b", 2, {.dtype = none}); }},
  });
}
