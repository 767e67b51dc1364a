// compile(): functions captured into plans, state on the device, nothing stale and nothing frozen.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <anneal/anneal.h>

#include "error_text.h"

using namespace anneal;

namespace {

// One layer that learns by plain gradient descent.
struct Learner {
  Tensor weight = parameter("weight", tensor({0.5f, -0.25f, 1.0f}, {3, 1}));

  Tensor operator()(const Tensor& x) const { return matmul(x, weight); }
  Tensor learn(const Tensor& x, const Tensor& y) {
    Tensor loss = mean(square((*this)(x)-y));
    record(weight, weight - grad(loss, {weight})[0] * 0.1);
    return loss;
  }
};

std::vector<float> ramp(size_t count, float scale) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = scale * static_cast<float>((i * 7 + 3) % 11) - 0.5f;
  return values;
}

}  // namespace

TEST_CASE("compile: a step does what evaluating it does, bit for bit") {
  for (const char* device : {"cpu", "interpreter"}) {
    CAPTURE(device);
    DeviceScope scope(device);
    Learner compiled, plain;
    const Tensor x = from_data(ramp(12, 0.2f), {4, 3}), y = from_data(ramp(4, 0.3f), {4, 1});
    auto step = compile([&](const Tensor& a, const Tensor& b) { return compiled.learn(a, b); });
    for (int i = 0; i < 5; ++i) {
      Step by_hand;
      const Tensor loss = plain.learn(x, y);
      CHECK(step(x, y).item() == by_hand.evaluate({loss})[0].item());
      CHECK(compiled.weight.to_vector() == plain.weight.to_vector());
    }
    CHECK(step.plan_count() == 1);
  }
}

TEST_CASE("compile: from the second call on nothing is built, compiled or allocated") {
  Learner model;
  const Tensor x = parameter("x", zeros({4, 3})), y = parameter("y", zeros({4, 1}));
  auto step = compile([&](const Tensor& a, const Tensor& b) { return model.learn(a, b); });
  step(x, y);
  for (int i = 0; i < 3; ++i) {
    const Counters before = counters();
    x.write(ramp(12, 0.1f * static_cast<float>(i)));
    y.write(ramp(4, 0.2f));
    const double loss = step(x, y).item();
    const Counters done = counters() - before;
    CHECK(loss > 0);
    CHECK(done.nodes_built == 0);
    CHECK(done.kernels_scheduled == 0);
    CHECK(done.kernels_compiled == 0);
    CHECK(done.bytes_allocated == 0);
    CHECK(done.host_to_device_bytes == (12 + 4) * 4);
    CHECK(done.device_to_host_bytes == 4);
    CHECK(done.launches > 0);
  }
}

TEST_CASE("compile: several functions share parameters") {
  Learner model;
  auto step = compile([&](const Tensor& x, const Tensor& y) { return model.learn(x, y); });
  auto predict = compile([&](const Tensor& x) { return model(x); });
  const Tensor x = from_data(ramp(12, 0.2f), {4, 3}), y = from_data(ramp(4, 0.3f), {4, 1});
  const Tensor one = from_data(ramp(3, 0.4f), {1, 3});
  const float before = predict(one).item<float>();
  step(x, y);
  const float after = predict(one).item<float>();
  CHECK(before != after);
  CHECK(after == matmul(one, model.weight).item<float>());
  // What is assigned outside is seen, too.
  model.weight.write(std::vector<float>{1, 1, 1});
  CHECK(predict(one).item<float>() == doctest::Approx(sum(one).item()));
}

TEST_CASE("compile: results that are held stay as they are") {
  const Tensor weight = parameter("weight", tensor({1.0f, 2.0f}));
  auto step = compile([&](const Tensor& x) {
    record(weight, weight + x);
    return weight * 10.0;
  });
  const Tensor x = tensor({1.0f, 1.0f});
  const Tensor first = step(x);
  const Tensor later = first + 0.5;  // not computed yet
  const Tensor second = step(x);
  CHECK(first.to_vector() == std::vector<float>{10, 20});
  CHECK(second.to_vector() == std::vector<float>{20, 30});
  CHECK(step(x).to_vector() == std::vector<float>{30, 40});
  CHECK(later.to_vector() == std::vector<float>{10.5f, 20.5f});
}

TEST_CASE("compile: any number of results") {
  auto two = compile([](const Tensor& x) { return std::pair(x + 1.0, x * 2.0); });
  const auto [a, b] = two(tensor({1.0f, 2.0f}));
  CHECK(a.to_vector() == std::vector<float>{2, 3});
  CHECK(b.to_vector() == std::vector<float>{2, 4});
  auto three = compile([](const Tensor& x) { return std::array{x, x + 1.0, x + 1.0}; });
  const std::array<Tensor, 3> same = three(tensor({1.0f}));
  CHECK(same[0].item() == 1);
  CHECK(same[1].item() == 2);
  CHECK(same[2].item() == 2);
  const Tensor count = parameter("count", tensor({0}));
  auto none = compile([&] { record(count, count + 1); });
  none();
  none();
  CHECK(count.item<int>() == 2);
}

TEST_CASE("compile: other shapes and dtypes get plans of their own") {
  auto twice = compile([](const Tensor& x) { return x * 2; }, {.most_plans = 3});
  CHECK(twice(tensor({1.0f, 2.0f})).to_vector() == std::vector<float>{2, 4});
  CHECK(twice(tensor({1.0f, 2.0f, 3.0f})).to_vector() == std::vector<float>{2, 4, 6});
  CHECK(twice(tensor({1, 2})).to_vector<int>() == std::vector<int>{2, 4});
  CHECK(twice(tensor({5.0f, 2.0f})).to_vector() == std::vector<float>{10, 4});
  CHECK(twice.plan_count() == 3);
  const std::string text = error_of([&] { twice(tensor({1.0f})); });
  CHECK(contains(text, "\"input0\" keeps changing: it is f32[1] now"));
  CHECK(contains(text, "compile_test.cc"));
  CHECK(contains(text, "declare its size as a Variable"));
}

TEST_CASE("compile: Variables take their values from the inputs") {
  const Variable batch("batch", 1, 64);
  Learner model;
  auto predict = compile(
      [&](const Tensor& x, const Tensor& y) { return model(x) - y; },
      {.name = "predict", .inputs = {{"x", {{batch, 3}}, DType::F32}, {"y", {{batch, 1}}}}});
  for (const int64_t n : {1, 5, 64, 2}) {
    const Tensor x = from_data(ramp(static_cast<size_t>(3 * n), 0.2f), {n, 3});
    const Tensor y = from_data(ramp(static_cast<size_t>(n), 0.2f), {n, 1});
    const Tensor result = predict(x, y);
    CHECK(result.shape() == Sizes{n, 1});
    CHECK(result.to_vector() == (matmul(x, model.weight) - y).to_vector());
  }
  CHECK(predict.plan_count() == 1);
  const Tensor y = zeros({4, 1}).realize();
  CHECK(contains(error_of([&] { predict(zeros({5, 3}), y); }),
                 "input \"y\" is f32[4, 1], predict takes f32[batch, 1]"));
  CHECK(contains(error_of([&] { predict(zeros({65, 3}), zeros({65, 1})); }),
                 "batch is 65 here, its bounds are 1 and 64"));
  CHECK(contains(error_of([&] { predict(zeros({4, 3}, DType::F64), y); }),
                 "input \"x\" is f64[4, 3], predict takes f32[batch, 3]"));
}

TEST_CASE("compile: inputs by name") {
  auto difference =
      compile([](const Tensor& a, const Tensor& b) { return a - b; }, {.inputs = {{"a"}, {"b"}}});
  const Tensor one = tensor({1.0f}), five = tensor({5.0f});
  CHECK(difference.run({{"b", one}, {"a", five}})[0].item() == 4);
  CHECK(contains(error_of([&] { difference.run({{"a", one}, {"c", one}}); }),
                 "there is no input \"c\""));
  CHECK(contains(error_of([&] { difference.run({{"a", one}}); }), "input \"b\" is missing"));
}

TEST_CASE("compile: what the host would freeze is found, with its line") {
  int calls = 0;
  auto counting = compile([&](const Tensor& x) { return x * ++calls; });
  std::string text = error_of([&] { counting(tensor({1.0f})); });
  CHECK(contains(text, "the number 1.0"));
  CHECK(contains(text, "was 2.0 when the function was captured again"));
  CHECK(contains(text, "compile_test.cc"));
  CHECK(contains(text, "pass it as an input"));

  auto making = compile([&](const Tensor& x) { return x + parameter("fresh", tensor({1.0f})); });
  CHECK(contains(error_of([&] { making(tensor({1.0f})); }), "the parameter \"fresh\""));

  bool on = false;
  auto branching = compile([&](const Tensor& x) {
    on = !on;
    return on ? exp(x) : sin(x);
  });
  CHECK(contains(error_of([&] { branching(tensor({1.0f})); }), "builds exp"));

  auto unchecked = compile([&](const Tensor& x) { return x * ++calls; }, {.check = false});
  unchecked(tensor({1.0f}));
}

TEST_CASE("compile: equal data of the host is a constant, other data an error") {
  const float wanted[] = {1, 2};
  auto adding = compile([&](const Tensor& x) { return x + tensor({wanted[0], wanted[1]}); });
  CHECK(adding(tensor({1.0f, 1.0f})).to_vector() == std::vector<float>{2, 3});
  const Counters before = counters();
  adding(tensor({5.0f, 5.0f})).to_vector();
  CHECK((counters() - before).host_to_device_bytes == 2 * 4);  // the input alone

  // Whatever its bits and its size.
  auto odd = compile(
      [&] { return concat({from_data(std::vector<float>{NAN, -0.0f}, {2}), tensor({1.0f})}, 0); });
  CHECK(std::isnan(odd().to_vector()[0]));
  CHECK(std::signbit(odd().to_vector()[1]));
  auto empty = compile([&] { return sum(from_data(std::vector<float>(), {0})) + 1; });
  CHECK(empty().item() == 1);

  float t = 0;
  auto other = compile([&](const Tensor& x) { return x + tensor({t += 1}); });
  const std::string text = error_of([&] { other(tensor({1.0f})); });
  CHECK(contains(text, "a tensor from data of the host"));
  CHECK(contains(text, "each time another"));
  CHECK(contains(text, "pass it as an input"));
  CHECK(contains(text, "compile_test.cc"));

  // What was computed meanwhile would stay what it was, equal or not.
  const Tensor weight = parameter("weight", tensor({3.0f}));
  auto reading = compile([&](const Tensor& x) { return x * (weight * 2).realize(); });
  CHECK(contains(error_of([&] { reading(tensor({1.0f})); }), "computes a value"));
}

TEST_CASE("compile: random numbers go on from call to call") {
  seed(7);
  auto draw = compile([] { return rand({4}); });
  const std::vector<float> first = draw().to_vector(), second = draw().to_vector();
  CHECK(first != second);
  seed(7);
  auto same = compile([] { return rand({4}); }), other = compile([] { return rand({4}); });
  CHECK(same().to_vector() == first);
  CHECK(other().to_vector() != first);
  CHECK(same().to_vector() == second);
}

TEST_CASE("compile: draws are a stream of the function's own, whatever is drawn beside it") {
  auto function = [](const Tensor& x) {
    const Tensor unused = rand({3});
    return concat({x * 0 + rand({2}), randn({2}) * 0 + rand({2})}, 0);
  };
  auto values_of = [&](bool disturbed) {
    seed(3);
    auto draw = compile(function);
    std::vector<std::vector<float>> values;
    for (int i = 0; i < 4; ++i) {
      if (disturbed) rand({5}).realize();
      values.push_back(draw(tensor({1.0f, 2.0f})).to_vector());
    }
    return values;
  };
  const std::vector<std::vector<float>> values = values_of(false);
  CHECK(values == values_of(true));
  std::vector<float> all;
  for (const std::vector<float>& row : values) all.insert(all.end(), row.begin(), row.end());
  for (int i = 0; i < 20; ++i) all.push_back(rand({1}).item<float>());
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());  // nothing is drawn twice

  // A generator of the user's own moves on, too.
  Generator own(5);
  auto draw_own = compile([&] { return Generator(own).uniform({2}); });
  CHECK(draw_own().to_vector() == Generator(5).uniform({2}).to_vector());
  CHECK(draw_own().to_vector() != Generator(5).uniform({2}).to_vector());
}

TEST_CASE("compile: a checkpoint with the function's state goes on exactly") {
  struct Run {
    nn::Linear layer{nullptr, "layer", 3, 2};
    optim::AdamW adamw{layer};
    Compiled<std::function<Tensor(const Tensor&)>> step = compile(
        [this](const Tensor& x) {
          const Tensor loss = mean(square(layer(x + rand({4, 3}))));
          adamw.update(loss);
          return loss;
        },
        {.name = "step"});
    State state() const { return join({layer.state(), adamw.state(), step.state()}); }
  };
  const Tensor x = from_data(ramp(12, 0.2f), {4, 3});
  seed(11);
  Run first;
  for (int i = 0; i < 3; ++i) first.step(x);
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("anneal-state-{}", getpid())).string();
  io::save_safetensors(path, first.state());
  seed(12);  // another process would have drawn other numbers so far
  Run second;
  second.step(x);
  load_state(second.state(), io::load_safetensors(path));
  std::filesystem::remove(path);
  for (int i = 0; i < 3; ++i) CHECK(first.step(x).item() == second.step(x).item());
  CHECK(contains(error_of([&] { join({first.state(), second.step.state()}); }),
                 "two tensors are called \"step.random\""));
}

TEST_CASE("compile: a module in another mode has another plan") {
  struct Model : nn::Module {
    nn::Linear up{this, "up", 3, 64};
    nn::Dropout dropout{this, "dropout", 0.5};
    Tensor operator()(const Tensor& x) const { return dropout(up(x)); }
  };
  Model model;
  auto forward = compile([&](const Tensor& x) { return model(x); });
  const Tensor x = from_data(ramp(12, 0.2f), {4, 3});
  auto zeros_in = [&] { return std::ranges::count(forward(x).to_vector(), 0.0f); };
  CHECK(zeros_in() > 64);
  model.eval();
  CHECK(zeros_in() == 0);
  CHECK(forward.plan_count() == 2);
  model.train();
  CHECK(zeros_in() > 64);
  CHECK(forward.plan_count() == 2);
  model.eval();
  const std::vector<float> exact = forward(x).to_vector();
  model.compute_in(DType::BF16);
  CHECK(forward(x).to_vector<double>() != std::vector<double>(exact.begin(), exact.end()));
  model.compute_in({});
  CHECK(forward(x).to_vector() == exact);
  CHECK(forward.plan_count() == 3);

  // A function that sets the mode itself does not depend on it.
  auto evaluated = compile([&](const Tensor& input) {
    model.eval();
    const Tensor y = model(input);
    model.train();
    return y;
  });
  for (int i = 0; i < 3; ++i) CHECK(evaluated(x).to_vector() == exact);
  CHECK(evaluated.plan_count() == 1);
}

TEST_CASE("compile: an input may be the very parameter that changes") {
  const Tensor value = parameter("value", tensor({1.0f, 2.0f}));
  auto add = compile([&](const Tensor& x) { record(value, value + x); });
  add(value);
  add(value);
  CHECK(value.to_vector() == std::vector<float>{4, 8});
}

TEST_CASE("write: replaces what a parameter holds, and nothing else") {
  const Tensor p = parameter("p", tensor({1.0f, 2.0f}));
  const Tensor copy = evaluate({p})[0], doubled = p * 2.0;
  doubled.realize();
  p.write(std::vector<float>{5, 6});
  CHECK(copy.to_vector() == std::vector<float>{1, 2});
  CHECK(doubled.to_vector() == std::vector<float>{2, 4});
  CHECK((p * 2.0).to_vector() == std::vector<float>{10, 12});
  CHECK(contains(error_of([&] { p.write(std::vector<float>{1}); }), "4 bytes do not fill \"p\""));
  CHECK(contains(error_of([&] { p.write(std::vector<int>{1, 2}); }),
                 "\"p\" is f32, the values are i32"));
  CHECK(contains(error_of([&] { (p + 1.0).write(std::vector<float>{1, 2}); }), "only a parameter"));
}
