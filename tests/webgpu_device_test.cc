// WebGPU as a device of the runtime: what a step moves and asks for, GPUs that go away, and what is
// refused. Values are the business of device_cases_test.cc.
#include "runtime/webgpu/webgpu_device.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/anneal.h>

#include "codegen/wgsl/kernel_shader.h"
#include "error_text.h"
#include "runtime/execute/evaluator.h"
#include "runtime/execute/executor.h"
#include "runtime/webgpu/pipeline_cache.h"
#include "schedule/schedule.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

DeviceCounters done() { return current_evaluator().counters().device; }

webgpu::Gpu& gpu() { return *gpu_of(dynamic_cast<Executor&>(current_evaluator()).device()); }

void lose_gpu() {
  gpu().lose();
  CHECK(contains(error_of([] { gpu().wait(); }), "was lost"));
}

std::vector<float> floats(const Tensor& tensor) { return tensor.to_vector<float>(); }

// The shaders that compute it.
std::string shaders_of(const Tensor& tensor) {
  const Device& device = dynamic_cast<Executor&>(current_evaluator()).device();
  const NodeRef root = node_of(tensor);
  const Schedule schedule =
      schedule_program(simplify_program({&root, 1}), {device.capabilities(), {}});
  GraphScope scope(*schedule.graph);
  std::string text;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        const GpuKernel made = make_gpu_kernel(part.body, {.capabilities = device.capabilities()});
        text += shader_of(made, device.capabilities(),
                          expected_memory(made.program, schedule, part.arguments))
                    .text;
      }
  return text;
}

}  // namespace

TEST_CASE("webgpu device: numbers that change are written, not compiled") {
  DeviceScope scope("webgpu");
  const Tensor x = tensor({0.5f, -1.5f, 2.0f, 4.0f, 0.25f}), small = x.cast(DType::I32);
  const Tensor w = parameter("w", x);
  double lr = 0.5;
  std::vector<float> want = floats(w);
  for (int step = 0; step < 5; ++step, lr *= 0.75) {
    const RuntimeCounters before = current_evaluator().counters();
    evaluate({w.assign(w - lr * x)});
    const std::vector<Tensor> results = evaluate({where(x > lr, x, 7 * lr), small * (3 + step)});
    const RuntimeCounters after = current_evaluator().counters();
    if (step > 1) CHECK(after.kernels_compiled == before.kernels_compiled);
    for (size_t i = 0; i < want.size(); ++i) {
      const float value = floats(x)[i], rate = static_cast<float>(lr);
      want[i] -= rate * value;
      CHECK(floats(w)[i] == doctest::Approx(want[i]));
      CHECK(floats(results[0])[i] == doctest::Approx(value > rate ? value : 7 * lr));
      CHECK(results[1].to_vector<int>()[i] == static_cast<int>(value) * (3 + step));
    }
  }
}

TEST_CASE("webgpu device: a step is one submit, moves its inputs and allocates nothing") {
  DeviceScope scope("webgpu");
  Tensor weight = parameter("weight", full({16, 4}, 0.5));
  const Tensor x = parameter("x", zeros({32, 16}));
  auto step = compile([&](const Tensor& a) {
    Tensor loss = mean(square(matmul(a, weight)));
    record(weight, weight - grad(loss, {weight})[0] * 0.1);
    return loss;
  });
  step(x);
  double last = 1e9;
  for (int i = 0; i < 4; ++i) {
    const DeviceCounters before = done();
    x.write(std::vector<float>(32 * 16, 1));
    const Tensor loss = step(x);
    const DeviceCounters after = done();
    const double value = loss.item();
    CHECK(value < last);
    last = value;
    CHECK(after.submits - before.submits == 1);
    CHECK(after.bytes_in - before.bytes_in == 4 * 32 * 16);
    CHECK(after.bytes_out == before.bytes_out);
    CHECK(after.allocations == before.allocations);
    CHECK(done().bytes_out - after.bytes_out == 4);
  }
}

TEST_CASE("webgpu device: results take the memory that earlier ones gave back") {
  DeviceScope scope("webgpu");
  const Tensor x = parameter("x", full({512, 512}, 3.0));
  auto twice = compile([](const Tensor& a) { return a * 2; });
  auto sums = compile([](const Tensor& a) { return sum(a, {1}); });
  for (int i = 0; i < 2; ++i) sums(twice(x));
  const int64_t before = done().allocations;
  for (int i = 0; i < 5; ++i) CHECK(floats(sums(twice(x))) == std::vector<float>(512, 6 * 512));
  CHECK(done().allocations == before);
}

TEST_CASE("webgpu device: empty tensors beside each other") {
  DeviceScope scope("webgpu");
  const Tensor a = from_data(std::vector<float>{}, {0, 4});
  const Tensor b = from_data(std::vector<float>{}, {0, 4});
  CHECK(floats(sum(a + 2 * b, {0}) + full({4}, 3.0)) == std::vector<float>(4, 3));
}

TEST_CASE("webgpu device: f16, bf16 and fp8 without any feature for them") {
  WebGpuOptions options = WebGpuOptions::from_environment();
  options.gpu.optional_features = false;
  add_device("webgpu, plain",
             [options] { return std::make_unique<Executor>(make_webgpu_device(options)); });
  DeviceScope scope("webgpu, plain");
  CHECK_FALSE(gpu().f16());
  for (DType dtype : {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
    const Tensor x = from_data(std::vector<float>{1, 2, 4, -4}, {4}).cast(dtype);
    CHECK(floats((x * x).cast(DType::F32)) == std::vector<float>{1, 4, 16, 16});
  }
}

TEST_CASE(
    "webgpu device: elements narrower than a word are stored by words where a thread has all") {
  struct Row {
    std::vector<int64_t> sizes;
    bool whole;  // every row is made of whole words
  };
  const Row rows[] = {{{4096}, true},     {{4098}, false},  {{4095}, false},
                      {{32, 64}, true},   {{33, 36}, true}, {{32, 33}, false},
                      {{5, 7, 60}, true}, {{1}, false},     {{3, 2}, false}};
  for (DType dtype : {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::Bool, DType::I8,
                      DType::U8, DType::I16, DType::U16})
    for (const Row& row : rows) {
      INFO(name(dtype), " [", fmt::format("{}", fmt::join(row.sizes, ", ")), "]");
      const Sizes sizes(row.sizes.begin(), row.sizes.end());
      std::vector<float> values(static_cast<size_t>(
          std::accumulate(row.sizes.begin(), row.sizes.end(), int64_t{1}, std::multiplies<>())));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) - 6;
      auto changed = [&] {
        const Tensor narrow = from_data(values, sizes).cast(dtype).realize();
        // Loads of neighbours, stores of neighbours, and one that turns them around.
        const Tensor twice = where(narrow.cast(DType::F32) > 2.0, narrow, flip(narrow, {0}));
        return std::vector{narrow, twice.realize(), (narrow == twice).realize()};
      };
      std::vector<Tensor> expected, computed;
      {
        DeviceScope scope("interpreter");
        for (const Tensor& tensor : changed())
          expected.push_back(tensor.cast(DType::F32).realize());
      }
      DeviceScope scope("webgpu");
      for (const Tensor& tensor : changed()) computed.push_back(tensor.cast(DType::F32));
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(floats(computed[i]) == floats(expected[i]));
      const Tensor x = input("x", sizes);
      if (row.whole) CHECK_FALSE(contains(shaders_of((x + x).cast(dtype)), "atomic"));
    }
}

TEST_CASE("webgpu device: a tensor above the limit is refused before anything is allocated") {
  DeviceScope scope("webgpu");
  const int64_t before = done().allocations;
  const std::string error = error_of([] {
    const Tensor x = full({int64_t{3} << 29}, 1.0);  // 6 GiB
    (x + x).realize();
  });
  CHECK_MESSAGE(contains(error, "6442450944 bytes"), error);
  CHECK_MESSAGE(contains(error, "device \"webgpu\" allows"), error);
  CHECK_MESSAGE(contains(error, "split the tensor, or choose another device"), error);
  CHECK(done().allocations == before);
}

TEST_CASE("webgpu device: f64 is refused where a plan would need it") {
  DeviceScope scope("webgpu");
  auto twice = compile([](const Tensor& x) { return x + x; });
  const std::string error = error_of([&] { twice(from_data(std::vector<double>{1}, {1})); });
  CHECK_MESSAGE(contains(error, "WebGPU has no f64"), error);
  CHECK_MESSAGE(contains(error, "cast to f32"), error);
}

TEST_CASE("webgpu device: a lost GPU is opened again, and has again what the host has") {
  DeviceScope scope("webgpu");
  const Tensor known = from_data(std::vector<float>{1, 2}, {2});
  const Tensor computed = (known + 1).realize();
  CHECK(floats(known + known) == std::vector<float>{2, 4});
  const Tensor fetched = (known * 3).realize();
  CHECK(floats(fetched) == std::vector<float>{3, 6});
  lose_gpu();
  CHECK(floats(known + known) == std::vector<float>{2, 4});
  CHECK(floats(fetched + known) == std::vector<float>{4, 8});
  CHECK_FALSE(gpu().lost());
  const std::string error = error_of([&] { floats(computed); });
  CHECK_MESSAGE(contains(error, "a tensor of 8 bytes was on device \"webgpu\", which was lost"),
                error);
  CHECK_MESSAGE(contains(error, "load what was saved last"), error);
}

TEST_CASE("webgpu device: a plan goes on after a loss, from parameters that are set again") {
  DeviceScope scope("webgpu");
  Tensor weight = parameter("weight", full({2}, 1.0));
  auto step = compile([&](const Tensor& x) {
    record(weight, weight + x);
    return sum(weight + x);
  });
  const Tensor one = from_data(std::vector<float>{1, 1}, {2});
  step(one);
  CHECK(step(one).item() == doctest::Approx(6));
  lose_gpu();
  CHECK_MESSAGE(contains(error_of([&] { step(one); }), "which was lost"), "the weight is gone");
  weight.write(std::vector<float>{5, 5});
  CHECK(step(one).item() == doctest::Approx(12));
  CHECK(floats(weight) == std::vector<float>{6, 6});
}

TEST_CASE("webgpu device: the same text is compiled once, and forgotten when there are many") {
  DeviceScope scope("webgpu");
  webgpu::PipelineCache cache(gpu(), 2);
  auto source = [](int n) {
    return webgpu::KernelSource{
        fmt::format("k{}", n),
        fmt::format("@group(0) @binding(0) var<storage, read_write> x : array<i32>;\n"
                    "@compute @workgroup_size(1) fn main() {{ x[0] = {}; }}\n",
                    n),
        {{webgpu::Access::ReadWrite, 0}},
        0};
  };
  const webgpu::KernelSource both[] = {source(1), source(2), source(1)};
  const auto first = cache.compile(both);
  CHECK(first[0] == first[2]);
  CHECK(first[0] != first[1]);
  const webgpu::KernelSource again[] = {source(1)}, other[] = {source(3)};
  CHECK(cache.compile(again)[0] == first[0]);
  cache.compile(other);  // in the place of 2
  CHECK(cache.compile(again)[0] == first[0]);
  const webgpu::KernelSource second[] = {source(2)};
  CHECK(cache.compile(second)[0] != first[1]);
}

TEST_CASE("webgpu device: few results of additions at computed places look for what is added") {
  // As gradients of embeddings are: every place more than once, one of them nowhere.
  std::vector<int32_t> places(1000);
  std::vector<float> values(8000);
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<int32_t>(i * 7 % 13) - (i == 500 ? 100 : 0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) - 18;
  auto added = [&] {
    const Tensor index = expand(reshape(from_data(places, {1000}), {1000, 1}), {1000, 8});
    return scatter_add(full({12, 8}, 0.5), 0, index, from_data(values, {1000, 8}));
  };
  std::vector<float> expected, found;
  {
    DeviceScope scope("cpu");
    expected = added().to_vector();
  }
  DeviceScope scope("webgpu");
  found = added().to_vector();
  CHECK(found == expected);  // small integers and halves: exact in any order
}

namespace {

Tensor random_tensor(int64_t seed, const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>((i * 7919 + static_cast<size_t>(seed) * 104729) % 1009) / 504 - 1;
  return from_data(values, {sizes.begin(), sizes.end()});
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

// Attention where row i sees elements i + first .. i + last, and its gradients, one after another.
std::vector<float> windowed_attention(int64_t rows, int64_t elements, int64_t first, int64_t last) {
  const Tensor q = random_tensor(1, {2, rows, 24}), k = random_tensor(2, {2, elements, 24}),
               v = random_tensor(3, {2, elements, 24});
  const Tensor row = reshape(arange(rows, DType::I32), {rows, 1}),
               element = arange(elements, DType::I32);
  const Tensor seen = (element <= row + last) & (row + first <= element);
  const Tensor scores = matmul(q, transpose(k, 1, 2)) * 0.2;
  const Tensor result = matmul(softmax(where(seen, scores, -INFINITY), 2), v);
  std::vector<Tensor> all = grad(sum(result * random_tensor(4, {2, rows, 24})), {q, k, v});
  all.push_back(result);
  std::vector<float> values;
  for (const Tensor& each : all)
    for (float value : floats(each)) values.push_back(value);
  return values;
}

}  // namespace

TEST_CASE("webgpu device: products of masked values leave out what the masks do") {
  struct Row {
    int64_t rows, elements, first, last;
  };
  std::vector<std::string> devices;
  for (const WebGpuOptions::Tiles tiles : {WebGpuOptions::Tiles::Gpu, WebGpuOptions::Tiles::Cpu}) {
    WebGpuOptions options = WebGpuOptions::from_environment();
    options.tiles = tiles;
    devices.push_back(fmt::format("webgpu, tiles {}", devices.size()));
    add_device(devices.back(),
               [options] { return std::make_unique<Executor>(make_webgpu_device(options)); });
  }
  for (const Row& each : {Row{160, 160, -1000, 0}, Row{130, 130, -40, 0}, Row{100, 164, -1000, 64},
                          Row{150, 150, 0, 1000}, Row{96, 96, -20, 20}}) {
    auto on = [&](const std::string& device) {
      DeviceScope scope(device);
      return windowed_attention(each.rows, each.elements, each.first, each.last);
    };
    const std::vector<float> expected = on("cpu");
    for (const std::string& device : devices)
      CHECK(largest_difference(on(device), expected) < 2e-5);
  }
}

TEST_CASE("webgpu device: products of whole rounds, whatever way their operands lie") {
  WebGpuOptions options = WebGpuOptions::from_environment();
  options.tiles = WebGpuOptions::Tiles::Gpu;
  add_device("webgpu, rounds",
             [options] { return std::make_unique<Executor>(make_webgpu_device(options)); });
  struct Row {
    int64_t rows, columns, terms, blocks;
  };
  for (const Row& each : {Row{2042, 2045, 96, 4}, Row{2048, 2048, 80, 5}, Row{2048, 2048, 48, 1}}) {
    const Tensor a = random_tensor(1, {each.rows, each.terms}),
                 b = random_tensor(2, {each.terms, each.columns}),
                 a_turned = random_tensor(3, {each.terms, each.rows}),
                 b_turned = random_tensor(4, {each.columns, each.terms});
    for (const Tensor& left : {a, transpose(a_turned)})
      for (const Tensor& right : {b, transpose(b_turned)}) {
        auto on = [&](const std::string& device) {
          DeviceScope scope(device);
          return floats(matmul(left, right));
        };
        CHECK(largest_difference(on("webgpu, rounds"), on("cpu")) <
              1e-7 * static_cast<double>(each.terms));
        DeviceScope scope("webgpu, rounds");
        const std::string text = shaders_of(matmul(left, right));
        int64_t barriers = 0;
        for (size_t at = text.find("workgroupBarrier()"); at != std::string::npos;
             at = text.find("workgroupBarrier()", at + 1))
          ++barriers;
        CHECK(barriers == 2 * each.blocks);
      }
  }
}

namespace {

// What matrix units do, emulated.
void add_device_of_halves() {
  static bool known = false;
  if (std::exchange(known, true)) return;
  WebGpuOptions options = WebGpuOptions::from_environment();
  options.tiles = WebGpuOptions::Tiles::Gpu;
  options.matrices = WebGpuOptions::Matrices::Emulated;
  add_device("webgpu, halves",
             [options] { return std::make_unique<Executor>(make_webgpu_device(options)); });
}

}  // namespace

TEST_CASE("webgpu device: products of f16 halves are those of f32, however large numbers are") {
  add_device_of_halves();
  const int64_t rows = 200, columns = 258, terms = 132;
  const Tensor a = random_tensor(1, {rows, terms}), b = random_tensor(2, {terms, columns}),
               a_turned = random_tensor(3, {terms, rows}),
               b_turned = random_tensor(4, {columns, terms});
  auto on = [&](const std::string& device, const Tensor& left, const Tensor& right) {
    DeviceScope scope(device);
    return floats(matmul(left, right));
  };
  auto difference = [&](const Tensor& left, const Tensor& right) {
    return largest_difference(on("webgpu, halves", left, right), on("cpu", left, right));
  };
  for (const Tensor& left : {a, transpose(a_turned)})
    for (const Tensor& right : {b, transpose(b_turned)})
      CHECK(difference(left, right) < 1e-6 * static_cast<double>(terms));
  // Powers of two bring any size into the range of f16, and back.
  const double far = 0x1p-100;
  auto times = [](std::vector<float> values, double by) {
    for (float& value : values) value *= static_cast<float>(by);
    return values;
  };
  auto scaled = [&](const Tensor& tensor, double by) {
    return from_data(times(floats(tensor), by),
                     tensor.node() == a.node() ? Sizes{rows, terms} : Sizes{terms, columns});
  };
  const std::vector<float> plain = on("webgpu, halves", a, b);
  CHECK(on("webgpu, halves", scaled(a, far), scaled(b, 1 / far)) == plain);
  CHECK(on("webgpu, halves", scaled(a, 0x1p100), scaled(b, 0x1p-90)) == times(plain, 0x1p10));
  for (float zero : on("webgpu, halves", scaled(a, 0), b)) CHECK(zero == 0);
  // What is no number stays none, and changes no other row; neither does what is infinite.
  for (const float hole : {std::nanf(""), HUGE_VALF}) {
    std::vector<float> holes = floats(a);
    holes[5] = hole;
    std::vector<float> found = on("webgpu, halves", from_data(holes, {rows, terms}), b);
    CHECK(!std::isfinite(found[0]));
    std::copy_n(plain.begin(), columns, found.begin());
    CHECK(found == plain);
  }
  DeviceScope scope("webgpu, halves");
  CHECK(contains(shaders_of(matmul(a, b)), "fn multiply_0_1("));
}

TEST_CASE("webgpu device: products of f16 halves of any sizes, before and behind other things") {
  add_device_of_halves();
  std::mt19937_64 random(5);
  auto between = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  for (int number = 0; number < 16; ++number) {
    CAPTURE(number);
    const int64_t rows = between(128, 200), columns = between(128, 200), terms = between(64, 150);
    auto operand = [&](int64_t seed, int64_t down, int64_t across) {
      switch (random() % 4) {
        case 0: return random_tensor(seed, {down, across});
        case 1: return transpose(random_tensor(seed, {across, down}));
        case 2: return tanh(random_tensor(seed, {down, across}));
        default: return pad(random_tensor(seed, {down - 3, across - 1}), {{1, 2}, {0, 1}});
      }
    };
    const Tensor left = operand(1, rows, terms), right = operand(2, terms, columns);
    const Tensor bias = random_tensor(3, {columns}), more = random_tensor(4, {rows, columns});
    auto result = [&] {
      const Tensor product = matmul(left, right);
      switch (number % 4) {
        case 0: return product;
        case 1: return gelu(product + bias);
        case 2: return transpose(product * more);
        default: return sum(product * more, {1});
      }
    };
    auto on = [&](const std::string& device) {
      DeviceScope scope(device);
      return floats(result());
    };
    const std::vector<float> expected = on("cpu");
    float largest = 0;
    for (float value : expected) largest = std::max(largest, std::fabs(value));
    CHECK(largest_difference(on("webgpu, halves"), expected) < 3e-6 * largest);
    DeviceScope scope("webgpu, halves");
    CHECK(contains(shaders_of(result()), "fn multiply_0_1("));
  }
}

TEST_CASE("webgpu device: what lies across is turned in squares") {
  const Tensor a = random_tensor(1, {300, 517}), b = random_tensor(2, {517, 300}),
               cube = random_tensor(3, {40, 70, 64});
  const std::vector<std::function<Tensor()>> programs{
      [&] { return contiguous(transpose(a)); },
      [&] { return exp(transpose(a)) * b; },
      [&] { return transpose(a) + transpose(a * 3); },
      [&] { return contiguous(permute(cube, {2, 1, 0})); },
      [&] { return contiguous(permute(cube, {0, 2, 1})); },
      [&] { return contiguous(permute(cube, {1, 2, 0})); },
      [&] { return pad(transpose(a), {{3, 1}, {2, 5}}); },
      [&] { return where(b > 0, transpose(a), b); },
      [&] { return contiguous(transpose(slice(a, {{7, 295}, {33, 512}}))); }};
  WebGpuOptions options = WebGpuOptions::from_environment();
  options.tiles = WebGpuOptions::Tiles::Gpu;
  add_device("webgpu, squares",
             [options] { return std::make_unique<Executor>(make_webgpu_device(options)); });
  for (size_t i = 0; i < programs.size(); ++i) {
    CAPTURE(i);
    auto on = [&](const std::string& device) {
      DeviceScope scope(device);
      return floats(programs[i]());
    };
    CHECK(largest_difference(on("webgpu, squares"), on("cpu")) < 1e-5);
  }
  DeviceScope scope("webgpu, squares");
  CHECK(contains(shaders_of(contiguous(transpose(a))), "var<workgroup>"));
  CHECK_FALSE(contains(shaders_of(contiguous(a + 1)), "var<workgroup>"));
}

TEST_CASE("webgpu device: values whose tiles have no room in a group are stored") {
  auto gradient = [] {
    const Tensor x = random_tensor(1, {512, 64}), up = random_tensor(2, {64, 256}),
                 down = random_tensor(3, {256, 64});
    const Tensor result = x + matmul(gelu(matmul(x, up)), down);
    return floats(grad(sum(result * result) * 1e-3, {up})[0]);
  };
  std::vector<float> expected;
  {
    DeviceScope cpu("cpu");
    expected = gradient();
  }
  DeviceScope scope("webgpu");
  CHECK(largest_difference(gradient(), expected) < 1e-2);
}
