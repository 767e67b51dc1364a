// The other interfaces that webgpu.h has had, played by libraries of the tests
// (webgpu_other_library.cc) with Dawn behind them.
#include <cstdlib>

#include <doctest/doctest.h>

#include "environment_scope.h"
#include "error_text.h"
#include "runtime/webgpu/gpu.h"

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
}
