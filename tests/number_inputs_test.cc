// Numbers of the host that change from step to step: they become inputs of what was compiled, so
// that a loop stops compiling at its third step, and results stay the interpreter's.
#include "runtime/capture/number_inputs.h"

#include <array>
#include <cmath>
#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>
#include <anneal/device.h>

#include "base/call_site.h"
#include "ir/interpreter.h"
#include "op_case_runner.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/execute/evaluator.h"
#include "runtime/execute/executor.h"

using namespace anneal;

namespace {

using Numbers = std::vector<double>;

// A device that has seen nothing yet.
std::string fresh_device() {
  static int count = 0;
  const std::string name = fmt::format("fresh-{}", count++);
  add_device(name, [] { return std::make_unique<Executor>(make_cpu_device()); });
  return name;
}

RuntimeCounters done() { return current_evaluator().counters(); }

Array on_interpreter(const Tensor& tensor, const Bindings& bindings = {}) {
  DeviceScope scope("interpreter");
  return run(tensor, bindings);
}

// Runs a program with one number after another; what each step compiled.
std::vector<int64_t> kernels_of_steps(const Numbers& numbers,
                                      const std::function<Tensor(double)>& program,
                                      const Tolerance& tolerance = kF32,
                                      const Bindings& bindings = {}) {
  std::vector<int64_t> kernels;
  for (double number : numbers) {
    const Tensor tensor = program(number);
    const int64_t before = done().kernels_compiled;
    const Array got = run(tensor, bindings);
    kernels.push_back(done().kernels_compiled - before);
    check_array(fmt::format("with {}", number), got, on_interpreter(tensor, bindings), tolerance,
                true);
  }
  return kernels;
}

Tensor data(DType dtype = DType::F32) {
  return tensor({0.5, -1.25, 3.0, 0.75, -2.5, 1.0}).cast(dtype).realize();
}

// An integer that follows a number, whatever it is.
int whole(double number) { return std::isfinite(number) ? static_cast<int>(number * 8) : 100; }

Scalar f32(double value) { return Scalar::of(DType::F32, value); }

}  // namespace

TEST_CASE("number inputs: what differs is an input, equal uses share one") {
  const std::vector<Scalar> first{f32(1), f32(2), f32(1), Scalar::of_int(DType::I32, 7)};
  const NumberInputs none(first);
  CHECK(none.empty());
  CHECK(none.serve(first));
  const std::vector<Scalar> second{f32(3), f32(2), f32(3), Scalar::of_int(DType::I32, 8)};
  CHECK_FALSE(none.serve(second));
  CHECK(none.differing(second) == std::vector<size_t>{0, 2, 3});
  const NumberInputs wider = none.widened(second);
  CHECK(wider.serve(first));
  CHECK(wider.serve(second));
  REQUIRE(wider.buffers().size() == 2);
  CHECK(wider.buffers()[0].count == 1);  // the two uses of one number
  CHECK(wider.place(0).buffer == wider.place(2).buffer);
  CHECK(wider.place(1).buffer == -1);
  CHECK(wider.buffers()[1].dtype == DType::I32);
  CHECK(to_value(*wider.contents(second)[0]).as_double(0) == 3);
  CHECK(to_value(*wider.contents(second)[1]).at(0).as_int() == 8);
  // They are no longer one: each gets its own.
  const std::vector<Scalar> third{f32(4), f32(2), f32(5), Scalar::of_int(DType::I32, 8)};
  CHECK_FALSE(wider.serve(third));
  const NumberInputs widest = wider.widened(third);
  for (const std::vector<Scalar>& numbers : {first, second, third}) CHECK(widest.serve(numbers));
  CHECK(widest.buffers()[0].count == 2);
  // By bits: zeros have two signs, and NaN is NaN.
  const NumberInputs zero(std::array{f32(0.0), f32(NAN)});
  CHECK(zero.serve(std::array{f32(0.0), f32(NAN)}));
  CHECK_FALSE(zero.serve(std::array{f32(-0.0), f32(NAN)}));
}

TEST_CASE("number inputs: a loop with a learning rate that falls stops compiling at step three") {
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
    CAPTURE(name(dtype));
    DeviceScope scope(fresh_device());
    const Tensor w = parameter("w", data(dtype).reshape({3, 2}));
    const Tensor twin = parameter("twin", data(dtype).reshape({3, 2}));
    const Tensor x = data(dtype).reshape({2, 3}) * 0.25;
    auto update = [&](const Tensor& p, double lr) {
      const Tensor loss = mean(square(matmul(x, p) - 0.5));
      return p.assign(p - lr * grad(loss, {p})[0]);
    };
    double lr = 1;
    std::vector<int64_t> kernels;
    for (int step = 0; step < 12; ++step, lr *= 0.99) {
      const Counters before = counters();
      evaluate({update(w, lr)});
      const Counters step_done = counters() - before;
      kernels.push_back(step_done.kernels_compiled);
      CHECK(step_done.host_to_device_bytes == (step == 0 ? 0
                                                         : (dtype == DType::F64   ? 8
                                                            : dtype == DType::F32 ? 4
                                                                                  : 2)));
      DeviceScope inner("interpreter");
      evaluate({update(twin, lr)});
    }
    CHECK(kernels[0] > 0);
    CHECK(kernels[1] > 0);
    for (size_t i = 2; i < kernels.size(); ++i) CHECK(kernels[i] == 0);
    check_array("parameters", run(w, {}), on_interpreter(twin),
                dtype == DType::F64    ? kClose
                : dtype == DType::F32  ? kF32
                : dtype == DType::BF16 ? kBF16
                                       : kF16);
  }
}

TEST_CASE("number inputs: wherever a number is used") {
  struct Row {
    const char* name;
    std::function<Tensor(double)> program;
    Tolerance tolerance = kF32;
  };
  const Tensor x = data(), ints = (data() * 4).cast(DType::I32).realize();
  const Tensor wide = data(DType::F64);
  const std::vector<Row> rows{
      {"factor", [&](double c) { return x * c; }},
      {"several", [&](double c) { return (x - c) / (1 + c * c) + std::cos(c); }},
      {"f64", [&](double c) { return exp(wide * c) + c; }, kClose},
      {"i32", [&](double c) { return ints * whole(c) + 3; }, kExact},
      {"i64", [&](double c) { return ints.cast(DType::I64) - whole(c); }, kExact},
      {"u8", [&](double c) { return ints.cast(DType::U8) + std::abs(whole(c)); }, kExact},
      {"integer division", [&](double c) { return floor_divide(ints, whole(c)); }, kExact},
      {"shift", [&](double c) { return ints << whole(c); }, kExact},
      {"position", [&](double c) { return where(arange(6) == whole(c) / 4, x, 0.0); }},
      {"chosen", [&](double c) { return where(x > 0, x, c); }},
      {"threshold", [&](double c) { return cast(x < c, DType::F32) * x; }},
      {"reduced", [&](double c) { return sum(x * c + 1); }},
      {"reduced alone", [&](double c) { return sum(full({6}, c)) + x; }},
      {"maximum", [&](double c) { return max(maximum(x, c)); }},
      {"clamped",
       [&](double c) { return clamp(x, -std::abs(whole(c)), std::abs(whole(c)) / 16.0); }},
      {"clipped", [&](double c) { return x * minimum(1.0, c / sqrt(sum(square(x)))); }},
      {"padded", [&](double c) { return pad(x, {{1, 2}}, PadMode::Constant, c + 10); }},
      {"full", [&](double c) { return full({6}, c) + x; }},
      {"full alone", [&](double c) { return full({3, 2}, c); }},
      {"one element", [&](double c) { return full({1}, c); }},
      {"no axis", [&](double c) { return full({}, c) * 2; }},
      {"a tensor of one number", [&](double c) { return full({}, c) * x; }},
      {"base", [&](double c) { return pow(c + 1, x); }},
      {"exponent", [&](double c) { return pow(abs(x), c); }},
      {"through softmax", [&](double c) { return softmax(x * c); }},
      {"in a product", [&](double c) { return matmul(x.reshape({2, 3}) * c, x.reshape({3, 2})); }},
      {"stopped", [&](double c) { return stop_gradient(full({6}, c)) * x; }},
      {"derivative", [&](double c) {
         const Tensor y = data() + 0;
         return grad(sum(exp(y * c)), {y})[0];
       }}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    DeviceScope scope(fresh_device());
    const std::vector<int64_t> kernels =
        kernels_of_steps({0.75, 1.25, 1.75, 2.75, 0.25, -1.5, 1.25, 0, NAN, -0.0, 1, INFINITY, 2},
                         row.program, row.tolerance);
    for (size_t i = 2; i < kernels.size(); ++i) CHECK(kernels[i] == 0);
  }
}

TEST_CASE("number inputs: numbers that change now and then") {
  const Tensor x = data();
  auto program = [&](double c) { return exp(x * 0.5) * c + 0.25; };
  {  // constant, then not, then constant
    DeviceScope scope(fresh_device());
    const std::vector<int64_t> kernels =
        kernels_of_steps({2, 2, 2, 3, 4, 5, 5, 5, 2, 2, 6}, program);
    CHECK(kernels == std::vector<int64_t>{1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  }
  {  // two that take turns
    DeviceScope scope(fresh_device());
    CHECK(kernels_of_steps({2, 3, 2, 3, 2, 3}, program) == std::vector<int64_t>{1, 1, 0, 0, 0, 0});
  }
  {  // another number starts to change later
    DeviceScope scope(fresh_device());
    int step = 0;
    auto two = [&](double c) { return x * c + (step++ < 4 ? 0.5 : c); };
    CHECK(kernels_of_steps({1, 2, 3, 4, 5, 6, 7, 8}, two) ==
          std::vector<int64_t>{1, 1, 0, 0, 1, 0, 0, 0});
  }
  {  // equal by chance, at any step
    for (int chance = 0; chance < 5; ++chance) {
      DeviceScope scope(fresh_device());
      int step = 0;
      auto two = [&](double c) { return (x + c) * (step++ == chance ? c : 3 * c); };
      const std::vector<int64_t> kernels = kernels_of_steps({1, 2, 4, 5, 6, 7}, two);
      for (size_t i = 2; i < kernels.size(); ++i) CHECK(kernels[i] == 0);
    }
  }
  {  // always equal, then not: once more
    DeviceScope scope(fresh_device());
    int step = 0;
    auto two = [&](double c) { return (x + c) * (step++ < 4 ? c : 3 * c); };
    CHECK(kernels_of_steps({1, 2, 4, 5, 6, 7, 8}, two) ==
          std::vector<int64_t>{1, 1, 0, 0, 1, 0, 0});
  }
}

TEST_CASE("number inputs: schedules and draws of the host") {
  const Tensor x = data();
  DeviceScope scope(fresh_device());
  Draws draws("numbers");
  Numbers cosine, drawn;
  for (int i = 0; i < 40; ++i) {
    cosine.push_back(0.5 + 0.5 * std::cos(0.1 * i));
    drawn.push_back(draws.uniform(-1, 1));
  }
  for (const Numbers& numbers : {cosine, drawn}) {
    const std::vector<int64_t> kernels =
        kernels_of_steps(numbers, [&](double c) { return tanh(x * c) + sum(x); });
    for (size_t i = 2; i < kernels.size(); ++i) CHECK(kernels[i] == 0);
  }
  CHECK(done().misses == 2);  // for the first schedule served the second
}

TEST_CASE("number inputs: item, realize and random draws beside them") {
  DeviceScope scope(fresh_device());
  const Tensor x = data();
  Generator random(5), same(5);
  for (int i = 0; i < 6; ++i) {
    const double c = 0.5 + i;
    const RuntimeCounters before = done();
    CHECK(sum(x * c).item() == doctest::Approx(1.5 * c));
    Tensor y = x * c - 1;
    y.realize();
    CHECK(y.to_vector()[2] == doctest::Approx(3 * c - 1));
    const std::vector<float> noisy = (random.uniform({6}) * c).to_vector();
    if (i > 1) CHECK(done().misses == before.misses);
    DeviceScope inner("interpreter");
    CHECK(noisy == (same.uniform({6}) * c).to_vector());
  }
}

TEST_CASE("number inputs: with symbolic sizes") {
  DeviceScope scope(fresh_device());
  Variable n("n", 1, 32);
  const Tensor x = input("x", {n, 2});
  for (int64_t size : {3, 1, 7}) {
    const Tensor values = (arange(2 * size).reshape({size, 2}) * 0.5).realize();
    const RuntimeCounters before = done();
    kernels_of_steps({0.5, 1.5, 2.5, -1, 0},
                     [&](double c) { return sum(x * c, {0}) + full({n, 2}, c); }, kF32,
                     {.sizes = {{n, size}}, .inputs = {{x, values.cast(DType::F32)}}});
    if (size != 3) CHECK(done().kernels_compiled == before.kernels_compiled);
  }
}

TEST_CASE("number inputs: numbers that rules look for keep code of their own") {
  DeviceScope scope(fresh_device());
  const Tensor x = abs(data()).realize();
  // Each power is computed as well as if it were the only one, until they are too many.
  const std::vector<int64_t> powers = kernels_of_steps(
      {2, 3, 0.5, 2, 3, 0.5, -1, 0.25, 1, 5, 3, 2, 7}, [&](double c) { return pow(x, c); });
  CHECK(powers == std::vector<int64_t>{1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("number inputs: a compiled function has its numbers in its code") {
  DeviceScope scope(fresh_device());
  const Tensor x = data();
  for (double c : {2.0, 3.0, 4.0}) (x * c).to_vector();
  auto times = compile([&](const Tensor& a) { return a * 5; });
  const RuntimeCounters before = done();
  CHECK(times(x).to_vector()[2] == 15);
  CHECK(done().misses == before.misses + 1);
  const Counters start = counters();
  CHECK(times(x).to_vector()[2] == 15);
  CHECK((counters() - start).host_to_device_bytes == 0);
}

TEST_CASE("number inputs: what is remembered stays bounded") {
  Executor executor(make_cpu_device(), {.most_programs = 4});
  const Tensor x = data();
  auto run_program = [&](int shape, double c) {
    CallScope call("evaluate", Location::current());
    const Contents contents({});
    const Tensor program = x.reshape({shape, 6 / shape}) * c;
    return to_value(*executor.run({{program.node()}, {}, &contents})[0]).as_double(2);
  };
  for (int round = 0; round < 3; ++round)
    for (int shape : {1, 2, 3, 6})
      for (double c : {2.0, 3.0, 4.0, 5.0}) CHECK(run_program(shape, c) == 3 * c);
  CHECK(executor.program_count() <= 4);
  CHECK(executor.counters().evicted > 0);
}
