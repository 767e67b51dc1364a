// Optimizers and schedules against the same formulas in plain double arithmetic.
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "models/networks.h"
#include "models/program.h"
#include "runtime/cpu/cpu_device.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

using Doubles = std::vector<double>;

// One coordinate of a reference: its value and two moments.
struct Reference {
  double w, m = 0, v = 0;
};
using Rule = std::function<void(Reference& r, double gradient, int t)>;  // t = 1, 2, ..

const Doubles kStart{0.5, -1.0, 2.0}, kTarget{1.0, 2.0, -3.0};

// sum (w - target)^4 for 100 steps, in f64 and in f32. Both start from the same numbers.
void check_follows(const std::function<std::unique_ptr<optim::Optimizer>(const Tensor&)>& make,
                   const Rule& rule) {
  for (DType dtype : {DType::F64, DType::F32}) {
    Tensor w = parameter("w", from_data(kStart, {3}).cast(dtype));
    Tensor loss = sum(pow(w - from_data(kTarget, {3}).cast(dtype), 4));
    auto optimizer = make(w);
    const std::vector<Tensor> step = optimizer->updates(loss);
    std::vector<Reference> reference;
    for (double start : kStart) reference.push_back({start});
    const double close = dtype == DType::F64 ? 1e-9 : 2e-4;
    for (int t = 1; t <= 100; ++t) {
      for (size_t i = 0; i < 3; ++i) {
        const double d = reference[i].w - kTarget[i];
        rule(reference[i], 4 * d * d * d, t);
      }
      evaluate(step);
      const Doubles trained = w.to_vector<double>();
      for (size_t i = 0; i < 3; ++i)
        CHECK(trained[i] == doctest::Approx(reference[i].w).epsilon(close));
    }
    CHECK(optimizer->steps().item<int>() == 100);
  }
}

template <typename Optimizer, typename Options>
auto maker(const Options& options) {
  return [options](const Tensor& w) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<Optimizer>(std::vector{w}, options);
  };
}

double adam_direction(Reference& r, double g, int t) {
  r.m = 0.9 * r.m + 0.1 * g;
  r.v = 0.999 * r.v + 0.001 * g * g;
  return r.m / (1 - std::pow(0.9, t)) / (std::sqrt(r.v / (1 - std::pow(0.999, t))) + 1e-8);
}

struct Regression : nn::Module {
  nn::Linear up{this, "up", 5, 8}, down{this, "down", 8, 1};
  Tensor operator()(const Tensor& x) const { return down(tanh(up(x))); }
};

Tensor rows(int64_t count, uint64_t seed) { return Generator(seed).normal({count, 5}).realize(); }

}  // namespace

TEST_CASE("optim: sgd follows a float64 reference for 100 steps") {
  const double lr = 0.002, momentum = 0.8, decay = 0.1;
  check_follows(maker<optim::Sgd>(optim::SgdOptions{.lr = lr, .weight_decay = decay}),
                [=](Reference& r, double g, int) { r.w -= lr * (g + decay * r.w); });
  check_follows(maker<optim::Sgd>(optim::SgdOptions{.lr = lr, .momentum = momentum}),
                [=](Reference& r, double g, int) {
                  r.m = momentum * r.m + g;
                  r.w -= lr * r.m;
                });
  check_follows(
      maker<optim::Sgd>(optim::SgdOptions{.lr = lr, .momentum = momentum, .dampening = 0.3}),
      [=](Reference& r, double g, int t) {
        r.m = t == 1 ? g : momentum * r.m + 0.7 * g;
        r.w -= lr * r.m;
      });
  check_follows(maker<optim::Sgd>(optim::SgdOptions{
                    .lr = lr, .momentum = momentum, .weight_decay = decay, .nesterov = true}),
                [=](Reference& r, double g, int) {
                  g += decay * r.w;
                  r.m = momentum * r.m + g;
                  r.w -= lr * (g + momentum * r.m);
                });
}

TEST_CASE("optim: adam and adamw follow a float64 reference for 100 steps") {
  const double lr = 0.05, decay = 0.1;
  check_follows(
      maker<optim::AdamW>(optim::AdamWOptions{.lr = lr, .weight_decay = decay}),
      [=](Reference& r, double g, int t) { r.w -= lr * (adam_direction(r, g, t) + decay * r.w); });
  check_follows(
      maker<optim::Adam>(optim::AdamOptions{.lr = lr, .weight_decay = decay}),
      [=](Reference& r, double g, int t) { r.w -= lr * adam_direction(r, g + decay * r.w, t); });
}

TEST_CASE("optim: lion follows a float64 reference for 100 steps") {
  const double lr = 0.01, decay = 0.1;
  check_follows(maker<optim::Lion>(optim::LionOptions{.lr = lr, .weight_decay = decay}),
                [=](Reference& r, double g, int) {
                  const double u = 0.9 * r.m + 0.1 * g;
                  r.w -= lr * ((u > 0) - (u < 0) + decay * r.w);
                  r.m = 0.99 * r.m + 0.01 * g;
                });
}

TEST_CASE("optim: schedules are the formulas for every step") {
  struct Row {
    optim::Schedule schedule;
    std::function<double(int)> reference;
  };
  auto cosine = [](int t) {
    return 0.1 + 0.5 * 0.9 * (1 + std::cos(std::numbers::pi * std::min(t, 60) / 60));
  };
  const std::vector<Row> rows{
      {0.3, [](int) { return 0.3; }},
      {optim::linear(1, 0.2, 50), [](int t) { return 1 - 0.8 * std::min(t / 50.0, 1.0); }},
      {optim::cosine(1, 0.1, 60), cosine},
      {optim::warm_up(10, optim::cosine(1, 0.1, 60)),
       [&](int t) { return t < 10 ? (t + 1) / 10.0 : cosine(t - 10); }},
      {optim::staircase(1, 0.5, 30), [](int t) { return std::pow(0.5, t / 30); }},
      {optim::multi_step(2, 0.1, {20, 70}), [](int t) { return t < 20   ? 2
                                                               : t < 70 ? 0.2
                                                                        : 0.02; }},
      {optim::table([](int64_t t) { return 1.0 / static_cast<double>(t + 1); }, 40),
       [](int t) { return 1.0 / (std::min(t, 39) + 1); }},
      {optim::Schedule([](const Tensor& step) { return exp(step * -0.01); }),
       [](int t) { return std::exp(-0.01 * t); }},
  };
  Tensor step = input("step", {});
  std::vector<Tensor> rates;
  for (const Row& row : rows) rates.push_back(row.schedule(step));
  for (int t = 0; t < 100; ++t) {
    const std::vector<Tensor> got =
        evaluate(rates, {.inputs = {{step, full({}, static_cast<double>(t))}}});
    for (size_t i = 0; i < rows.size(); ++i)
      CHECK_MESSAGE(got[i].item() == doctest::Approx(rows[i].reference(t)).epsilon(1e-5),
                    "schedule " << i << ", step " << t);
  }
}

TEST_CASE("optim: the learning rate follows the counter") {
  Tensor w = parameter("w", 0.0);
  optim::Sgd sgd(std::vector{w}, {.lr = optim::linear(1, 0, 4)});
  const std::vector<Tensor> step = sgd.updates(w * 1.0);
  Doubles rates;
  for (int i = 0; i < 5; ++i) {
    rates.push_back(sgd.learning_rate().item());
    evaluate(step);
  }
  CHECK(rates == Doubles{1, 0.75, 0.5, 0.25, 0});
  CHECK(w.item() == doctest::Approx(-2.5));
}

TEST_CASE("optim: four accumulated micro-batches are one batch") {
  seed(1);
  Regression whole, parts;
  parts.load(whole.state());
  const optim::AdamWOptions options{.lr = 0.01,
                                    .gradients = {.clip_norm = 0.5, .accumulate = true}};
  optim::AdamW one(whole, options), four(parts, options);
  Tensor x = rows(32, 7);
  auto loss = [](const Regression& model, const Tensor& from) {
    return mse_loss(model(from), sum(sin(from), 1, true));
  };
  const std::vector<Tensor> step = one.updates(loss(whole, x));
  Tensor part = input("part", {8, 5});
  auto built = [](const auto& build) {
    Step building;
    build();
    return building.updates();
  };
  const std::vector<Tensor> accumulate = built([&] { four.accumulate(loss(parts, part)); });
  const std::vector<Tensor> apply = built([&] { four.update_accumulated(); });
  for (int t = 0; t < 5; ++t) {
    evaluate(step);
    for (int64_t i = 0; i < 4; ++i)
      evaluate(accumulate, {.inputs = {{part, slice(x, {{8 * i, 8 * i + 8}})}}});
    evaluate(apply);
  }
  const State a = whole.state(), b = parts.state();
  for (size_t i = 0; i < a.size(); ++i) {
    const Doubles first = a[i].second.to_vector<double>(), second = b[i].second.to_vector<double>();
    for (size_t k = 0; k < first.size(); ++k)
      CHECK(second[k] == doctest::Approx(first[k]).epsilon(1e-4));
  }
  CHECK(four.steps().item<int>() == 5);
  optim::Sgd keeps_none(whole);
  CHECK_THROWS_AS(keeps_none.accumulate(loss(whole, x)), UserError);
}

TEST_CASE("optim: accumulating and updating may be one step") {
  Tensor w = parameter("w", 1.0);
  optim::Sgd sgd(std::vector{w}, {.lr = 0.5, .gradients = {.accumulate = true}});
  Step step;
  sgd.accumulate(w * 2.0);
  sgd.accumulate(w * 4.0);
  sgd.update_accumulated();
  step.evaluate({});
  CHECK(w.item() == doctest::Approx(1 - 0.5 * 3));
  step.evaluate({});
  CHECK(w.item() == doctest::Approx(1 - 0.5 * 6));
}

TEST_CASE("optim: two updates in one step are both done") {
  Tensor w = parameter("w", 1.0);
  optim::Sgd sgd(std::vector{w}, {.lr = 0.5});
  Step step;
  sgd.update(w * 2.0);
  sgd.update(w * 4.0);
  step.evaluate({});
  CHECK(w.item() == doctest::Approx(1 - 0.5 * 6));
  CHECK(sgd.steps().item<int>() == 2);
}

TEST_CASE("optim: clipping leaves the direction and bounds the norm") {
  std::vector<Tensor> gradients{tensor({3.0f, 0.0f}), tensor({4.0f})};
  CHECK(optim::global_norm(gradients).item() == doctest::Approx(5));
  std::vector<Tensor> clipped = optim::clip_by_norm(gradients, 1);
  CHECK(clipped[0].to_vector()[0] == doctest::Approx(0.6));
  CHECK(clipped[1].item() == doctest::Approx(0.8));
  CHECK(optim::clip_by_norm(gradients, 6)[1].item() == 4);

  Tensor w = parameter("w", from_data(Doubles{0, 0}, {2}).cast(DType::F32));
  optim::Sgd sgd(std::vector{w}, {.lr = 1, .gradients = {.clip_norm = 1}});
  evaluate(sgd.updates(sum(w * tensor({30.0f, 40.0f}))));
  CHECK(w.to_vector()[0] == doctest::Approx(-0.6));
  CHECK(w.to_vector()[1] == doctest::Approx(-0.8));
}

TEST_CASE("optim: gradients that are not finite change nothing but the count of such steps") {
  Tensor w = parameter("w", full({2}, 1.0)), x = input("x", {2});
  optim::AdamW adamw(std::vector{w}, {.gradients = {.clip_norm = 1, .skip_non_finite = true}});
  const std::vector<Tensor> step = adamw.updates(sum(w * x));
  auto run = [&](float second) {
    evaluate(step, {.inputs = {{x, tensor({1.0f, second})}}});
    return w.to_vector();
  };
  const std::vector<float> after = run(1);
  CHECK(after[0] < 1);
  CHECK(run(std::numeric_limits<float>::infinity()) == after);
  CHECK(run(std::numeric_limits<float>::quiet_NaN()) == after);
  CHECK(adamw.steps().item<int>() == 1);
  CHECK(adamw.skipped().item<int>() == 2);
  for (const auto& [name, tensor] : adamw.state())
    for (double value : tensor.to_vector<double>()) CHECK(std::isfinite(value));
  CHECK(run(1)[0] < after[0]);
}

TEST_CASE("optim: the loss scale halves where gradients overflow and doubles after a while") {
  Tensor w = parameter("w", full({2}, 1.0)), x = input("x", {2});
  optim::Sgd sgd(
      std::vector{w},
      {.lr = 1, .gradients = {.loss_scale = optim::LossScale{.initial = 1024, .patience = 3}}});
  // The gradient of the product is f16: 100 times a scale above 655 overflows.
  Tensor narrow = (w.cast(DType::F16) * x.cast(DType::F16)).cast(DType::F32);
  const std::vector<Tensor> step = sgd.updates(sum(narrow));
  Tensor scale;
  for (const auto& [name, tensor] : sgd.state())
    if (name == "sgd.scale") scale = tensor;
  Doubles scales;
  for (int t = 0; t < 6; ++t) {
    evaluate(step, {.inputs = {{x, tensor({100.0f, 1.0f / 4096})}}});
    scales.push_back(scale.item());
  }
  CHECK(scales == Doubles{512, 512, 512, 1024, 512, 512});
  CHECK(sgd.steps().item<int>() == 4);
  CHECK(w.to_vector()[0] == doctest::Approx(1 - 4 * 100));
  CHECK(w.to_vector()[1] == doctest::Approx(1 - 4.0 / 4096));
}

TEST_CASE("optim: parameters of 16 bits move by steps they could not hold") {
  Tensor w = parameter("w", full({}, 1.0, DType::BF16));
  optim::Sgd sgd(std::vector{w}, {.lr = 1e-3});
  const std::vector<Tensor> step = sgd.updates(w.cast(DType::F32) * 1.0);
  for (int t = 0; t < 100; ++t) evaluate(step);
  CHECK(w.item() == doctest::Approx(0.9).epsilon(0.004));
  CHECK(sgd.state()[1].first == "w.sgd.master");
}

TEST_CASE("optim: groups have their own decay and rate") {
  Tensor a = parameter("a", full({2, 2}, 1.0)), b = parameter("b", full({2}, 1.0));
  const std::vector<optim::Group> groups{{optim::is_vector, 0.5, 0.0}};
  optim::AdamW adamw(std::vector{a, b}, {.lr = 0.1, .weight_decay = 0.5, .groups = groups});
  evaluate(adamw.updates(sum(a) + sum(b)));
  CHECK(a.to_vector()[0] == doctest::Approx(1 - 0.1 * (1 + 0.5)));
  CHECK(b.to_vector()[0] == doctest::Approx(1 - 0.1 * 0.5));
}

TEST_CASE("optim: an average follows what the same step makes of the parameters") {
  Regression model;
  optim::Sgd sgd(model, {.lr = 0.1});
  optim::Ema ema(model, 0.75);
  const Doubles start = model.down.bias.to_vector<double>();
  Tensor x = rows(4, 9);
  Step step;
  sgd.update(mse_loss(model(x), zeros({4, 1})));
  ema.update();
  step.evaluate({});
  const double first = model.down.bias.item();
  step.evaluate({});
  const double second = model.down.bias.item();
  Regression averaged;
  averaged.load(ema.state());
  const double expected = 0.75 * (0.75 * start[0] + 0.25 * first) + 0.25 * second;
  CHECK(averaged.down.bias.item() == doctest::Approx(expected));
}

TEST_CASE("optim: an average of a model holds its buffers, too") {
  struct Net : nn::Module {
    nn::BatchNorm norm{this, "norm", 3};
    nn::Dropout dropout{this, "dropout", 0.5};
    Tensor operator()(const Tensor& x) const { return dropout(norm(x)); }
  };
  Net model;
  optim::Sgd sgd(model, {.lr = 0.1});
  optim::Ema copied(model, 0.75), averaged(model, 0.75, {.average_buffers = true});
  Tensor x = rows(4, 9) * 3 + 1;
  Step step;
  sgd.update(mean(square(model(slice(concat({x, x}, 1), {{}, {.end = 3}})))));
  copied.update();
  averaged.update();
  std::vector<float> average = model.norm.running_mean.to_vector();
  for (int i = 0; i < 3; ++i) {
    step.evaluate({});
    const std::vector<float> now = model.norm.running_mean.to_vector();
    for (size_t c = 0; c < now.size(); ++c) average[c] = 0.75f * average[c] + 0.25f * now[c];
  }
  // All of a model's state: nothing is missing, and the key of a dropout is no average.
  Net other;
  other.load(copied.state());
  CHECK(other.norm.running_mean.to_vector() == model.norm.running_mean.to_vector());
  CHECK(other.norm.running_var.to_vector() == model.norm.running_var.to_vector());
  CHECK(other.dropout.random.to_vector<uint32_t>() == model.dropout.random.to_vector<uint32_t>());
  CHECK(other.norm.weight.to_vector() != model.norm.weight.to_vector());
  other.load(averaged.state());
  const std::vector<float> got = other.norm.running_mean.to_vector();
  for (size_t c = 0; c < got.size(); ++c) CHECK(got[c] == doctest::Approx(average[c]));
  CHECK(other.dropout.random.to_vector<uint32_t>() == model.dropout.random.to_vector<uint32_t>());
  // A list of parameters has no buffers.
  CHECK(optim::Ema(model.parameters(), 0.5).state().size() == 2);
}

TEST_CASE("optim: a run goes on from its state, bit for bit") {
  Tensor x = rows(16, 11);
  auto loss = [&](const Regression& model) { return mse_loss(model(x), sum(x, 1, true)); };
  seed(2);
  Regression model;
  optim::AdamW adamw(model, {.lr = optim::warm_up(5, optim::cosine(0.1, 0, 20))});
  const std::vector<Tensor> step = adamw.updates(loss(model));
  for (int t = 0; t < 7; ++t) evaluate(step);
  Regression resumed;
  optim::AdamW other(resumed, {.lr = optim::warm_up(5, optim::cosine(0.1, 0, 20))});
  resumed.load(model.state());
  other.load(adamw.state());
  const std::vector<Tensor> other_step = other.updates(loss(resumed));
  for (int t = 0; t < 7; ++t) {
    evaluate(step);
    evaluate(other_step);
  }
  CHECK(resumed.up.weight.to_vector() == model.up.weight.to_vector());
}

TEST_CASE("optim: training makes the loss small") {
  seed(3);
  Regression model;
  optim::AdamW adamw(model, {.lr = 0.02});
  Tensor x = rows(64, 13);
  Step step;
  Tensor loss = mse_loss(model(x), sum(x, 1, true));
  adamw.update(loss);
  const double first = step.evaluate({loss})[0].item();
  double last = first;
  for (int t = 0; t < 200; ++t) last = step.evaluate({loss})[0].item();
  CHECK(last < first / 20);
}

TEST_CASE("optim: a parameter that the loss does not depend on is named, with what helps here") {
  Tensor used = parameter("used", ones({2})), unused = parameter("unused", ones({2}));
  optim::Sgd sgd(std::vector<Tensor>{used, unused});
  Step step;
  for (const bool accumulated : {false, true}) {
    optim::Adam adam(std::vector<Tensor>{used, unused}, {.gradients = {.accumulate = true}});
    try {
      accumulated ? adam.accumulate(sum(used)) : sgd.update(sum(used));
      FAIL("nothing was said");
    } catch (const UserError& error) {
      CHECK(error.message() == fmt::format("{}: the loss does not depend on parameter \"unused\"",
                                           accumulated ? "accumulate" : "update"));
      CHECK(error.hint() ==
            "use it in the model, freeze() it, or give the optimizer a list without it");
    }
  }
}

TEST_CASE("optim: the updates of a program that is only looked at are places too") {
  models::Program program = models::mlp();
  // Steps done, steps skipped, and each parameter with its moments.
  CHECK(program.updates.size() == 2 + 3 * program.parameters.size());
  CHECK_THROWS_AS(evaluate({program.updates[0]}), UserError);
}

// Every shape of a GPT's parameters, with gradients that come from elsewhere.
TEST_CASE("optim: the updates of a 4-layer GPT are few kernels") {
  nn::StructureOnly structure;
  nn::Gpt gpt({.layers = 4, .width = 128, .heads = 4, .vocabulary = 256, .block = 64});
  std::vector<Tensor> gradients;
  for (const nn::Parameter& p : gpt.parameters())
    gradients.push_back(input(p.path + ".gradient", p.tensor.shape()));
  Step step;
  optim::AdamW(gpt).apply(gradients);
  std::vector<NodeRef> roots;
  const std::vector<Tensor> updates = step.updates();
  for (const Tensor& update : updates) roots.push_back(update.node());
  const ScheduleOptions on_cpu{capabilities_of(host_cpu_target()), {}};
  CHECK(schedule_program(simplify_program(roots), on_cpu).kernels.size() <= 4);
}

namespace {

// A training step of a 4-layer GPT: its loss, then its updates.
std::vector<NodeRef> gpt_step(const nn::Gpt& gpt, const optim::GradientOptions& gradients) {
  const Tensor tokens = input("tokens", {16, 64}, DType::I32),
               targets = input("targets", {16, 64}, DType::I32);
  Step step;
  const Tensor loss = models::language_loss(gpt(tokens), targets);
  optim::AdamW(gpt, {.gradients = gradients}).update(loss);
  std::vector<NodeRef> roots{loss.node()};
  const std::vector<Tensor> updates = step.updates();
  for (const Tensor& update : updates) roots.push_back(update.node());
  return simplify_program(roots);
}

constexpr nn::GptOptions kGpt{
    .layers = 4, .width = 128, .heads = 4, .vocabulary = 65, .block = 64, .tied_head = false};

// The kernel that stores a parameter.
size_t writer_of(const Schedule& schedule, std::string_view parameter) {
  for (size_t k = 0; k < schedule.kernels.size(); ++k)
    for (const KernelPhase& phase : schedule.kernels[k].phases)
      for (const KernelPart& part : phase)
        for (NodeRef store : part.body.stores) {
          const auto slot = static_cast<size_t>(store->source(0)->arg.symbol->first);
          const auto buffer = static_cast<size_t>(part.arguments[slot]);
          NodeRef external = schedule.buffers[buffer].external;
          if (external && external->arg.symbol->text() == parameter) return k;
        }
  return schedule.kernels.size();
}

}  // namespace

// As `anneal train nanogpt` makes it, and with less of what it does to gradients.
TEST_CASE("optim: a whole step of a 4-layer GPT is at most 80 kernels") {
  for (const optim::GradientOptions& gradients :
       {optim::GradientOptions{.clip_norm = 1, .skip_non_finite = true},
        optim::GradientOptions{.skip_non_finite = true}, optim::GradientOptions{.clip_norm = 1},
        optim::GradientOptions{}}) {
    CAPTURE(gradients.clip_norm);
    CAPTURE(gradients.skip_non_finite);
    nn::StructureOnly structure;
    const nn::Gpt gpt(kGpt);
    const ScheduleOptions on_cpu{capabilities_of(host_cpu_target()), {}};
    const size_t kernels = schedule_program(gpt_step(gpt, gradients), on_cpu).kernels.size();
    CHECK(kernels <= 80);
    CHECK(kernels > 4);
  }
}

// All updates need the same few numbers: those that are ready first do not wait for others.
TEST_CASE("optim: a layer is updated when its gradient is known") {
  nn::StructureOnly structure;
  const nn::Gpt gpt(kGpt);
  const ScheduleOptions on_cpu{capabilities_of(host_cpu_target()), {}};
  const Schedule schedule = schedule_program(gpt_step(gpt, {}), on_cpu);
  size_t previous = 0;
  for (int layer = 3; layer >= 0; --layer) {
    const size_t writer = writer_of(schedule, fmt::format("blocks.{}.mlp.up.weight", layer));
    CHECK(writer > previous);
    CHECK(writer < schedule.kernels.size());
    previous = writer;
  }
}

TEST_CASE("optim: mistakes are explained") {
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{}), UserError);
  Tensor whole = parameter("n", 1), w = parameter("w", 1.0);
  CHECK_THROWS_AS(optim::Sgd(std::vector{whole}), UserError);
  CHECK_THROWS_AS(optim::Adam(std::vector{w}, {.beta1 = 1}), UserError);
  CHECK_THROWS_AS(optim::Sgd(std::vector{w}, {.nesterov = true}), UserError);
  optim::Sgd sgd(std::vector{w});
  CHECK_THROWS_AS(sgd.update(w * 1.0), UserError);  // no step is open
  CHECK_THROWS_AS(sgd.apply({}), UserError);
  CHECK_THROWS_AS(optim::linear(1, 0, 0), UserError);
}
