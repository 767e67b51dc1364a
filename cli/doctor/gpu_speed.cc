#include "cli/doctor/gpu_speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace anneal::cli {
namespace {

using webgpu::Access;
using webgpu::BindGroup;
using webgpu::Binding;
using webgpu::Buffer;
using webgpu::Dispatch;
using webgpu::Gpu;
using webgpu::KernelSource;
using webgpu::Pipeline;

constexpr int kRuns = 5;
constexpr double kLongEnough = 5e-3;  // seconds; shorter ones measure the launch
constexpr uint32_t kThreads = 256;

double seconds_of(auto&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double least_seconds(auto&& function) {
  double least = seconds_of(function);
  for (int i = 1; i < kRuns; ++i) least = std::min(least, seconds_of(function));
  return least;
}

// The time of one of `repeats` launches, which are enough to be measured.
double launch_seconds(Gpu& gpu, const Dispatch& dispatch) {
  for (size_t repeats = 1;; repeats *= 4) {
    const std::vector<Dispatch> list(repeats, dispatch);
    auto run = [&] {
      gpu.submit(list);
      gpu.wait();
    };
    run();
    if (seconds_of(run) >= kLongEnough || repeats > 1000)
      return least_seconds(run) / static_cast<double>(repeats);
  }
}

KernelSource copy_source() {
  return {.name = "copy",
          .wgsl = R"(@group(0) @binding(0) var<storage, read> x : array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y : array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id : vec3u, @builtin(num_workgroups) groups : vec3u) {
  for (var i = id.x; i < arrayLength(&x); i += groups.x * 256u) { y[i] = x[i]; }
})",
          .buffers = {{Access::Read, 16}, {Access::ReadWrite, 16}}};
}

constexpr int kRounds = 512, kChains = 8;

// Chains that do not depend on each other, whose values nobody can know before.
KernelSource arithmetic_source() {
  return {.name = "multiply_add",
          .wgsl = R"(@group(0) @binding(0) var<storage, read_write> y : array<vec4f>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id : vec3u) {
  let a = y[0];
  let b = y[1];
  var c0 = a; var c1 = b; var c2 = a + b; var c3 = a - b;
  var c4 = a * b; var c5 = -a; var c6 = -b; var c7 = a * a;
  for (var i = 0u; i < 512u; i++) {
    c0 = fma(c0, a, b); c1 = fma(c1, a, b); c2 = fma(c2, a, b); c3 = fma(c3, a, b);
    c4 = fma(c4, a, b); c5 = fma(c5, a, b); c6 = fma(c6, a, b); c7 = fma(c7, a, b);
  }
  let sum = c0 + c1 + c2 + c3 + c4 + c5 + c6 + c7;
  if (sum.x == 12345.0) { y[2] = sum; }
})",
          .buffers = {{Access::ReadWrite, 48}}};
}

}  // namespace

GpuSpeed gpu_speed(Gpu& gpu) {
  const bool cpu = gpu.adapter().kind == webgpu::AdapterKind::Cpu;
  const std::vector<KernelSource> sources{copy_source(), arithmetic_source()};
  const std::vector<Pipeline> pipelines = gpu.compile(sources);

  // Larger than the caches, within what may be bound.
  const int64_t bytes =
      std::min<int64_t>({gpu.limits().storage_binding_bytes, gpu.limits().buffer_bytes,
                         int64_t{cpu ? 64 : 256} << 20}) &
      ~int64_t{15};
  Buffer from = gpu.create_buffer(bytes, "from"), to = gpu.create_buffer(bytes, "to");
  const auto size = static_cast<double>(bytes);
  GpuSpeed speed;
  const BindGroup copied =
      gpu.bind(pipelines[0], std::array{Binding{&from, 0, bytes}, Binding{&to, 0, bytes}});
  const auto groups =
      static_cast<uint32_t>(std::min<int64_t>(bytes / 16 / kThreads, cpu ? 64 : 65535));
  speed.copy = 2 * size / launch_seconds(gpu, {&pipelines[0], &copied, {groups, 1, 1}}) * 1e-9;

  Buffer few = gpu.create_buffer(48, "few");
  const BindGroup computed = gpu.bind(pipelines[1], std::array{Binding{&few, 0, 48}});
  const uint32_t workgroups = cpu ? 16 : 8192;
  const double flops = 2.0 * 4 * kChains * kRounds * kThreads * workgroups;
  speed.arithmetic =
      flops / launch_seconds(gpu, {&pipelines[1], &computed, {workgroups, 1, 1}}) * 1e-9;

  std::vector<std::byte> host(static_cast<size_t>(bytes) / 4);
  speed.upload = size / 4 / least_seconds([&] {
                   gpu.write(from, 0, host);
                   gpu.wait();
                 }) *
                 1e-9;
  speed.download = size / 4 / least_seconds([&] { gpu.read(from, 0, host); }) * 1e-9;
  return speed;
}

}  // namespace anneal::cli
