// The other interfaces that webgpu.h has had, played by libraries of the tests
// (webgpu_other_library.cc) with Dawn behind them.
#include <cstdlib>

#include <doctest/doctest.h>

#include "base/os/shared_library.h"
#include "environment_scope.h"
#include "error_text.h"
#include "runtime/webgpu/gpu.h"
#include "runtime/webgpu/webgpu_device.h"
#include "webgpu_other_library.h"

using namespace anneal;
using namespace anneal::webgpu;

namespace {

KernelSource double_source() {
  return {.name = "double",
          .wgsl = R"(@group(0) @binding(0) var<storage, read> x : array<u32>;
@group(0) @binding(1) var<storage, read_write> y : array<u32>;
@group(0) @binding(2) var<uniform> count : vec4u;
@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id : vec3u) {
  if (id.x < count.x) { y[id.x] = 2u * x[id.x]; }
})",
          .buffers = {{Access::Read, 4}, {Access::ReadWrite, 4}},
          .uniform_bytes = 16};
}

template <typename T>
Buffer buffer_of(Gpu& on, const std::vector<T>& values) {
  Buffer buffer = on.create_buffer(static_cast<int64_t>(values.size() * sizeof(T)));
  on.write(buffer, 0, std::as_bytes(std::span(values)));
  return buffer;
}

void check_everything() {
  REQUIRE_FALSE(adapters().empty());
  const auto gpu = Gpu::open();
  CHECK(gpu->limits().storage_binding_bytes == gpu->adapter().limits.storage_binding_bytes);
  CHECK(gpu->limits().workgroup_invocations >= 256);
  CHECK(Gpu::open("", {.minimum_limits = true})->limits().storage_buffers == 8);

  std::vector<uint32_t> values(100, 21), result(100);
  Buffer x = buffer_of(*gpu, values), y = gpu->create_buffer(400);
  Buffer count = buffer_of(*gpu, std::vector<uint32_t>{99, 0, 0, 0});
  const std::vector<KernelSource> sources{double_source(), double_source()};
  const std::vector<Pipeline> pipelines = gpu->compile(sources);
  const BindGroup group = gpu->bind(
      pipelines[1], std::array{Binding{&x, 0, 400}, Binding{&y, 0, 400}, Binding{&count, 0, 16}});
  const Dispatch dispatch{&pipelines[1], &group, {4, 1, 1}};
  gpu->submit(std::span(&dispatch, 1));
  gpu->wait();
  gpu->read(y, 0, std::as_writable_bytes(std::span(result)));
  std::fill(values.begin(), values.end() - 1, 42u);
  values.back() = 0;
  CHECK(result == values);
  if (gpu->timestamps()) {
    const std::vector<Dispatch> list(100, dispatch);
    const std::vector<double> seconds = gpu->submit_timed(std::span(&list, 1));
    REQUIRE(seconds.size() == 1);
    CHECK(seconds[0] > 0);
  }
  if (gpu->f16()) {
    KernelSource half{.name = "half",
                      .wgsl = R"(enable f16;
@group(0) @binding(0) var<storage, read_write> y : array<f16>;
@compute @workgroup_size(1) fn main() { y[0] = y[1]; })",
                      .buffers = {{Access::ReadWrite, 2}}};
    CHECK(gpu->compile(half).name() == "half");
  }

  KernelSource wrong = double_source();
  wrong.wgsl.replace(wrong.wgsl.find("2u"), 2, "2f");
  const std::string error = error_of([&] { gpu->compile(wrong); });
  CHECK(contains(error, "kernel double does not compile"));
  CHECK(contains(error, "line 5"));

  gpu->lose();
  CHECK(contains(error_of([&] {
                   gpu->submit(std::span(&dispatch, 1));
                   gpu->wait();
                 }),
                 "was lost"));
}

const WhatWasAsked& what_was_asked() {
  const SharedLibrary library(ANNEAL_TEST_WEBGPU_CURRENT);
  void* const function = library.symbol(kWhatWasAsked);
  REQUIRE(function);
  return *reinterpret_cast<WhatWasAskedFunction*>(function)();  // NOLINT
}

int matrix_bytes(const WebGpuOptions& options) {
  return make_webgpu_device(options)->capabilities().matrix_element_bytes;
}

}  // namespace

TEST_CASE("webgpu: the interface of webgpu.h since May 2025") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  CHECK_FALSE(Library::get().of_2025);
  check_everything();
}

TEST_CASE("webgpu: the interface of wgpu-native in 2025, which is asked again and again") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_POLLED);
  CHECK(Library::get().polled);
  check_everything();
  CHECK_FALSE(Gpu::open("", {.matrices = true})->matrices());
}

TEST_CASE("webgpu: units for matrices are not asked for where nobody wishes them") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  EnvironmentScope offered(kOfferedMatrices, kUsualMatrices);
  const WhatWasAsked before = what_was_asked();
  for (const AdapterInfo& info : adapters()) CHECK_FALSE(info.matrices);
  const GpuOptions plain[] = {{}, {.optional_features = false, .matrices = true}};
  for (const GpuOptions& options : plain) {
    const auto gpu = Gpu::open("", options);
    CHECK_FALSE(gpu->adapter().matrices);
    CHECK_FALSE(gpu->matrices());
    CHECK_FALSE(gpu->f16());
  }
  CHECK(what_was_asked().switched_adapters == before.switched_adapters);
  CHECK(what_was_asked().switched_devices == before.switched_devices);
}

TEST_CASE("webgpu: units for matrices that are wished for and offered, also after a loss") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  EnvironmentScope offered(kOfferedMatrices, kUsualMatrices);
  const WhatWasAsked before = what_was_asked();
  const auto gpu = Gpu::open("", {.trust_shaders = true, .matrices = true});
  CHECK(gpu->matrices());
  CHECK(gpu->f16());
  CHECK(gpu->subgroups());
  CHECK(what_was_asked().matrix_devices == before.matrix_devices + 1);
  gpu->lose();
  CHECK(gpu->open_again()->matrices());
  CHECK(what_was_asked().matrix_devices == before.matrix_devices + 2);
  CHECK(what_was_asked().configs_kept == before.configs_kept);

  EnvironmentScope refused(kRefusedMatrices, "1");
  CHECK(contains(error_of([] { Gpu::open("", {.matrices = true}); }), "cannot be opened"));
}

TEST_CASE("webgpu: units for other matrices are none, and the GPU is as if none were wished for") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  struct Row {
    const char *what, *offer;
  };
  const Row rows[] = {
      {"of f32", "1 1 16 16 16 32 32"},        {"with sums in f16", "2 2 16 16 16 32 32"},
      {"of 8 rows", "2 1 8 16 16 32 32"},      {"of 8 columns", "2 1 16 8 16 32 32"},
      {"8 deep", "2 1 16 16 8 32 32"},         {"of 64 threads", "2 1 16 16 16 64 64"},
      {"of 16 threads", "2 1 16 16 16 16 32"}, {"of 64 or fewer", "2 1 16 16 16 32 64"},
      {"unknown threads", "2 1 16 16 16 0 0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    EnvironmentScope offered(kOfferedMatrices, row.offer);
    const WhatWasAsked before = what_was_asked();
    const auto gpu = Gpu::open("", {.matrices = true});
    CHECK(what_was_asked().switched_adapters > before.switched_adapters);
    CHECK_FALSE(gpu->matrices());
    CHECK_FALSE(gpu->f16());
    CHECK(what_was_asked().switched_devices == before.switched_devices);
    CHECK(what_was_asked().configs_kept == before.configs_kept);
  }
  CHECK_FALSE(Gpu::open("", {.matrices = true})->matrices());  // no feature
}

TEST_CASE("webgpu: adapters with units for matrices are shown as they are without a wish") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  EnvironmentScope offered(kOfferedMatrices, kUsualMatrices);
  const std::vector<AdapterInfo> plain = adapters(), all = adapters_and_matrices();
  REQUIRE(all.size() == plain.size());
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].name == plain[i].name);
    CHECK_FALSE(all[i].f16);
    CHECK(all[i].subgroup_max == plain[i].subgroup_max);
    CHECK(all[i].matrices);
  }
}

TEST_CASE("webgpu: kernels use units for matrices with high precision alone, or spell them out") {
  EnvironmentScope scope("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  WebGpuOptions options, high, emulated;
  for (WebGpuOptions* each : {&options, &high, &emulated}) each->tiles = WebGpuOptions::Tiles::Gpu;
  high.wishes.precision = MatmulPrecision::High;
  emulated.wishes.precision = MatmulPrecision::High;
  emulated.matrices = WebGpuOptions::Matrices::Emulated;
  CHECK(matrix_bytes(high) == 0);
  CHECK(matrix_bytes(emulated) == 4);

  EnvironmentScope offered(kOfferedMatrices, kUsualMatrices);
  CHECK(matrix_bytes(high) == 2);
  CHECK(gpu_of(*make_webgpu_device(high))->matrices());
  options.gpu.matrices = true;  // which is not for those who use a device to say
  const WhatWasAsked before = what_was_asked();
  CHECK(matrix_bytes(options) == 0);
  CHECK(matrix_bytes(emulated) == 4);
  emulated.wishes.precision = MatmulPrecision::Full;
  CHECK(matrix_bytes(emulated) == 4);
  CHECK(what_was_asked().switched_adapters == before.switched_adapters);
  // Kernels as for a CPU copy no operands that units could multiply.
  high.tiles = emulated.tiles = WebGpuOptions::Tiles::Cpu;
  CHECK(matrix_bytes(high) == 0);
  CHECK(matrix_bytes(emulated) == 0);
}

TEST_CASE("webgpu: the environment says how exact products are, and how tests make them") {
  auto precision = [] { return WebGpuOptions::from_environment().wishes.precision; };
  CHECK(precision() == MatmulPrecision::Full);
  CHECK(WebGpuOptions::from_environment().matrices == WebGpuOptions::Matrices::ByAdapter);
  {
    EnvironmentScope scope("ANNEAL_MATMUL_PRECISION", "high");
    CHECK(precision() == MatmulPrecision::High);
  }
  {
    EnvironmentScope scope("ANNEAL_MATMUL_PRECISION", "full");
    CHECK(precision() == MatmulPrecision::Full);
  }
  {
    EnvironmentScope scope("ANNEAL_MATMUL_PRECISION", "");
    CHECK(precision() == MatmulPrecision::Full);
  }
  {
    EnvironmentScope scope("ANNEAL_MATMUL_PRECISION", "High");
    const std::string error = error_of(precision);
    CHECK(contains(error, "ANNEAL_MATMUL_PRECISION must be full or high, got \"High\""));
  }
  CHECK(WebGpuOptions::from_environment().wishes.memory_bytes == 0);
  {
    EnvironmentScope scope("ANNEAL_MEMORY_BUDGET", "2G");
    CHECK(WebGpuOptions::from_environment().wishes.memory_bytes == int64_t{2} << 30);
  }
  {
    EnvironmentScope scope("ANNEAL_MEMORY_BUDGET", "much");
    CHECK(contains(error_of([] { WebGpuOptions::from_environment(); }),
                   "ANNEAL_MEMORY_BUDGET is \"much\", which is no number of bytes"));
  }
  EnvironmentScope scope("ANNEAL_WEBGPU_MATRICES", "emulated");
  CHECK(WebGpuOptions::from_environment().matrices == WebGpuOptions::Matrices::Emulated);
}
