// The layer over WebGPU, with shaders written by hand, on whatever GPU answers: in the tests that
// is one that computes on the CPU, which ./dev installs.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/os/files.h"
#include "environment_scope.h"
#include "error_text.h"
#include "runtime/webgpu/gpu.h"
#include "runtime/webgpu/webgpu_device.h"

using namespace anneal;
using namespace anneal::webgpu;

namespace {

// One for all cases; those that lose it open their own.
Gpu& gpu() {
  static auto& gpu = *Gpu::open().release();
  return gpu;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
Buffer buffer_of(Gpu& on, const std::vector<T>& values) {
  Buffer buffer = on.create_buffer(static_cast<int64_t>(values.size() * sizeof(T)));
  on.write(buffer, 0, bytes_of(values));
  return buffer;
}

template <typename T>
std::vector<T> contents(Gpu& on, const Buffer& buffer) {
  std::vector<T> values(static_cast<size_t>(buffer.bytes()) / sizeof(T));
  on.read(buffer, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

Binding whole(const Buffer& buffer) { return {&buffer, 0, buffer.bytes()}; }

std::vector<std::byte> counting(size_t count, int from = 1) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(from + static_cast<int>(i));
  return bytes;
}

KernelSource scale_source(std::string name = "scale") {
  return {.name = std::move(name),
          .wgsl = R"(struct Sizes { n : u32, factor : f32 }
@group(0) @binding(0) var<storage, read> x : array<f32>;
@group(0) @binding(1) var<storage, read_write> y : array<f32>;
@group(0) @binding(2) var<uniform> sizes : Sizes;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id : vec3u) {
  if (id.x < sizes.n) { y[id.x] = sizes.factor * x[id.x]; }
})",
          .buffers = {{Access::Read, 4}, {Access::ReadWrite, 4}},
          .uniform_bytes = 8};
}

struct Sizes {
  uint32_t n;
  float factor;
};

KernelSource increment_source() {
  return {.name = "increment",
          .wgsl = R"(@group(0) @binding(0) var<storage, read_write> y : array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = y[0] + 1u; })",
          .buffers = {{Access::ReadWrite, 4}}};
}

}  // namespace

TEST_CASE("webgpu: an adapter answers and says what it can do") {
  const std::vector<AdapterInfo> all = adapters();
  REQUIRE_FALSE(all.empty());
  for (const AdapterInfo& info : all) {
    CAPTURE(info.name);
    CHECK_FALSE(info.name.empty());
    CHECK(info.backend != "unknown");
    CHECK(info.limits.storage_buffers >= 8);
    CHECK(info.limits.storage_binding_bytes >= int64_t{128} << 20);
    CHECK(info.limits.buffer_bytes >= int64_t{256} << 20);
    CHECK(info.limits.workgroup_invocations >= 256);
    CHECK(info.limits.workgroup_bytes >= 16 << 10);
    CHECK(info.limits.workgroups_per_dimension >= 65535);
    CHECK(info.limits.storage_offset_alignment > 0);
    CHECK(info.limits.storage_offset_alignment <= 256);
  }
}

TEST_CASE("webgpu: adapters are chosen by number or name") {
  const std::vector<AdapterInfo> all = adapters();
  REQUIRE_FALSE(all.empty());
  CHECK(Gpu::open("0")->adapter().name == all[0].name);
  CHECK(Gpu::open(all[0].name.substr(0, 4))->adapter().name == all[0].name);
  const std::string error = error_of([] { Gpu::open("no such thing"); });
  CHECK(contains(error, "there is no GPU \"no such thing\""));
  CHECK(contains(error, all[0].name));
  CHECK(contains(error_of([] { Gpu::open("99"); }), "there is no GPU \"99\""));
}

TEST_CASE("webgpu: limits are the adapter's, or the least") {
  const AdapterInfo& adapter = gpu().adapter();
  CHECK(gpu().limits().storage_binding_bytes == adapter.limits.storage_binding_bytes);
  CHECK(gpu().limits().workgroup_invocations == adapter.limits.workgroup_invocations);
  CHECK(gpu().limits().storage_buffers == adapter.limits.storage_buffers);

  const auto least = Gpu::open("", {.minimum_limits = true, .optional_features = false});
  CHECK(least->limits().storage_buffers == 8);
  CHECK(least->limits().storage_binding_bytes == int64_t{128} << 20);
  CHECK(least->limits().buffer_bytes == int64_t{256} << 20);
  CHECK(least->limits().workgroup_invocations == 256);
  CHECK(least->limits().workgroup_bytes == 16 << 10);
  CHECK(least->limits().storage_offset_alignment == 256);
  CHECK_FALSE(least->f16());
  CHECK_FALSE(least->subgroups());
  KernelSource wide{.name = "nine", .wgsl = "", .buffers = std::vector<BufferSlot>(9)};
  CHECK_THROWS_WITH_AS(least->compile(wide),
                       "internal error: kernel nine binds 9 buffers, the GPU allows 8",
                       InternalError);
  CHECK(contains(error_of([&] { least->create_buffer(int64_t{6} << 30, "weights"); }),
                 "weights needs a buffer of 6442450944 bytes"));
}

TEST_CASE("webgpu: units for matrices that a library knows nothing of are not missed") {
  const auto wished = Gpu::open("", {.matrices = true});
  CHECK_FALSE(wished->matrices());
  CHECK(wished->f16() == gpu().f16());
}

TEST_CASE("webgpu: memory is zero at first and keeps what is written, at any offset and length") {
  for (int64_t size : {0, 1, 3, 4, 5, 17, 64}) {
    CAPTURE(size);
    Buffer buffer = gpu().create_buffer(size);
    CHECK(buffer.bytes() == size);
    std::vector<std::byte> expected(static_cast<size_t>(size));
    CHECK(contents<std::byte>(gpu(), buffer) == expected);
    for (int64_t offset = 0; offset < size; offset += 1 + offset / 3)
      for (int64_t length : {int64_t{1}, int64_t{2}, int64_t{5}, size - offset}) {
        if (offset + length > size) continue;
        CAPTURE(offset);
        CAPTURE(length);
        const auto bytes = counting(static_cast<size_t>(length), static_cast<int>(offset + length));
        gpu().write(buffer, offset, bytes);
        std::copy(bytes.begin(), bytes.end(), expected.begin() + offset);
        CHECK(contents<std::byte>(gpu(), buffer) == expected);
        std::vector<std::byte> part(static_cast<size_t>(length));
        gpu().read(buffer, offset, part);
        CHECK(part == bytes);
      }
  }
  Buffer buffer = gpu().create_buffer(8);
  std::vector<std::byte> nine(9);
  CHECK_THROWS_AS(gpu().write(buffer, 0, nine), InternalError);
  CHECK_THROWS_AS(gpu().read(buffer, 1, std::span(nine).first(8)), InternalError);
  CHECK_THROWS_AS(gpu().read(buffer, -1, std::span(nine).first(1)), InternalError);
}

TEST_CASE("webgpu: large memory is moved in parts, many small ones together") {
  std::vector<uint32_t> large((size_t{40} << 20) / 4 + 3);
  std::iota(large.begin(), large.end(), 7u);
  Buffer from = buffer_of(gpu(), large), to = gpu().create_buffer(from.bytes());
  gpu().copy(from, 0, to, 0, from.bytes());
  CHECK(contents<uint32_t>(gpu(), to) == large);

  std::vector<uint32_t> few(100);
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < few.size(); ++i)
    requests.push_back({&from, static_cast<int64_t>(4000 * i),
                        std::as_writable_bytes(std::span(few)).subspan(4 * i, 4)});
  const int64_t before = gpu().counters().submits;
  gpu().read(requests);
  CHECK(gpu().counters().submits == before + 1);
  for (size_t i = 0; i < few.size(); ++i) CHECK(few[i] == 7 + 1000 * i);
}

TEST_CASE("webgpu: kernels compute, with sizes in a uniform") {
  const Pipeline scale = gpu().compile(scale_source());
  for (uint32_t n : {1u, 63u, 64u, 65u, 1000u}) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 1.0f);
    Buffer x = buffer_of(gpu(), values), y = gpu().create_buffer(4 * n);
    Buffer sizes = buffer_of(gpu(), std::vector<Sizes>{{n, 0.5f}});
    const BindGroup group = gpu().bind(scale, std::array{whole(x), whole(y), whole(sizes)});
    const Dispatch dispatch{&scale, &group, {(n + 63) / 64, 1, 1}};
    gpu().submit(std::span(&dispatch, 1));
    for (float& value : values) value *= 0.5f;
    CHECK(contents<float>(gpu(), y) == values);
  }
}

TEST_CASE("webgpu: one submit runs a list of kernels in order, again and again") {
  const Pipeline increment = gpu().compile(increment_source());
  Buffer y = gpu().create_buffer(4);
  const BindGroup group = gpu().bind(increment, std::array{whole(y)});
  std::vector<Dispatch> list(50, Dispatch{&increment, &group, {1, 1, 1}});
  list.push_back({&increment, &group, {0, 1, 1}});  // nothing to do
  const GpuCounters before = gpu().counters();
  for (int i = 0; i < 4; ++i) gpu().submit(list);
  gpu().wait();
  CHECK(gpu().counters().submits == before.submits + 4);
  CHECK(gpu().counters().buffers_created == before.buffers_created);
  CHECK(contents<uint32_t>(gpu(), y)[0] == 200);

  const Dispatch huge{&increment, &group, {70'000, 1, 1}};
  CHECK_THROWS_WITH_AS(
      gpu().submit(std::span(&huge, 1)),
      fmt::format(
          "internal error: kernel increment wants 70000 x 1 x 1 workgroups, the GPU takes {}",
          gpu().limits().workgroups_per_dimension)
          .c_str(),
      InternalError);
}

TEST_CASE("webgpu: parts of one buffer are bound apart, all for writing") {
  KernelSource source{.name = "shift",
                      .wgsl = R"(@group(0) @binding(0) var<storage, read_write> x : array<u32>;
@group(0) @binding(1) var<storage, read_write> y : array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = x[0] + arrayLength(&x); })",
                      .buffers = {{Access::ReadWrite, 4}, {Access::ReadWrite, 4}}};
  const Pipeline shift = gpu().compile(source);
  const int64_t step = gpu().limits().storage_offset_alignment;
  Buffer arena = gpu().create_buffer(4 * step);
  gpu().write(arena, step, bytes_of(std::vector<uint32_t>{41}));
  const BindGroup group =
      gpu().bind(shift, std::array{Binding{&arena, step, 4}, Binding{&arena, 3 * step, 4}});
  const Dispatch dispatch{&shift, &group, {1, 1, 1}};
  gpu().submit(std::span(&dispatch, 1));
  uint32_t value = 0;
  gpu().read(arena, 3 * step, std::as_writable_bytes(std::span(&value, 1)));
  CHECK(value == 42);

  auto bind = [&](std::vector<Binding> bindings) {
    try {
      gpu().bind(shift, bindings);
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(contains(bind({{&arena, 0, 4}}), "kernel shift: 1 bindings are given, 2 expected"));
  CHECK(contains(bind({{&arena, 2, 4}, {&arena, 0, 4}}), "binding 0 begins at 2"));
  CHECK(contains(bind({{&arena, 0, 4}, {&arena, 3 * step, step + 1}}), "binding 1 ends at"));

  source.buffers[0].access = Access::Read;
  source.wgsl.replace(source.wgsl.find("read_write"), 10, "read");
  const Pipeline reading = gpu().compile(source);
  CHECK_THROWS_WITH_AS(
      gpu().bind(reading, std::array{Binding{&arena, 0, 4}, Binding{&arena, step, 4}}),
      "internal error: kernel shift: bindings 0 and 1 are of one buffer, one for reading and one "
      "for writing",
      InternalError);
}

TEST_CASE("webgpu: what WebGPU refuses names the kernel") {
  KernelSource source{.name = "overlapping",
                      .wgsl = R"(@group(0) @binding(0) var<storage, read_write> x : array<u32>;
@group(0) @binding(1) var<storage, read_write> y : array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = x[0]; })",
                      .buffers = {{Access::ReadWrite, 4}, {Access::ReadWrite, 4}}};
  const auto own = Gpu::open();
  const Pipeline pipeline = own->compile(source);
  Buffer buffer = own->create_buffer(16);
  std::string error;
  try {
    const BindGroup group = own->bind(pipeline, std::array{whole(buffer), whole(buffer)});
    const Dispatch dispatch{&pipeline, &group, {1, 1, 1}};
    own->submit(std::span(&dispatch, 1));
  } catch (const InternalError& thrown) {
    error = thrown.what();
  }
  CHECK(contains(error, "overlapping"));
  CHECK(own->create_buffer(4).bytes() == 4);  // it can still be used
}

TEST_CASE("webgpu: many kernels compile at once") {
  std::vector<KernelSource> sources;
  for (int i = 0; i < 20; ++i) {
    KernelSource source = increment_source();
    source.name = fmt::format("add_{}", i);
    source.wgsl.replace(source.wgsl.find("1u"), 2, fmt::format("{}u", i));
    sources.push_back(std::move(source));
  }
  const std::vector<Pipeline> pipelines = gpu().compile(sources);
  Buffer y = gpu().create_buffer(4);
  const BindGroup group = gpu().bind(pipelines[0], std::array{whole(y)});
  std::vector<Dispatch> list;
  for (const Pipeline& pipeline : pipelines) list.push_back({&pipeline, &group, {1, 1, 1}});
  gpu().submit(list);
  CHECK(contents<uint32_t>(gpu(), y)[0] == 190);
  CHECK(pipelines[7].name() == "add_7");
}

TEST_CASE("webgpu: a shader that does not compile is an error with kernel and line") {
  KernelSource wrong = increment_source();
  wrong.wgsl.replace(wrong.wgsl.find("1u"), 2, "1.5f");
  std::vector<KernelSource> sources{scale_source(), wrong};
  sources[1].name = "wrong";
  std::string error = error_of([&] { gpu().compile(sources); });
  CHECK(contains(error, "kernel wrong does not compile on"));
  CHECK(contains(error, "line 2"));
  CHECK(contains(error, "--device cpu"));

  wrong = scale_source("unlike its layout");
  wrong.buffers[1].access = Access::Read;
  error = error_of([&] { gpu().compile(wrong); });
  CHECK(contains(error, "kernel unlike its layout does not compile on"));
  wrong = scale_source("without entry");
  wrong.entry_point = "other";
  CHECK(contains(error_of([&] { gpu().compile(wrong); }), "kernel without entry does not compile"));
  CHECK(gpu().compile(scale_source()).name() == "scale");  // the GPU is as good as before
}

TEST_CASE("webgpu: features are there where they are said to be, and refused where not") {
  const std::string body = R"(@group(0) @binding(0) var<storage, read_write> y : array<u32>;
)";
  KernelSource half{
      .name = "half",
      .wgsl = "enable f16;\n" + body +
              "@compute @workgroup_size(1) fn main() { y[0] = u32(f16(1.5) * 2.0h); }",
      .buffers = {{Access::ReadWrite, 4}}};
  KernelSource groups{
      .name = "groups",
      .wgsl = "enable subgroups;\n" + body +
              "@compute @workgroup_size(64) fn main(@builtin(subgroup_size) s : u32)"
              " { let n = subgroupAdd(1u); if (n == s) { y[0] = n; } }",
      .buffers = {{Access::ReadWrite, 4}}};
  auto run = [](Gpu& on, const KernelSource& source) {
    const Pipeline pipeline = on.compile(source);
    Buffer y = on.create_buffer(4);
    const BindGroup group = on.bind(pipeline, std::array{whole(y)});
    const Dispatch dispatch{&pipeline, &group, {1, 1, 1}};
    on.submit(std::span(&dispatch, 1));
    return contents<uint32_t>(on, y)[0];
  };
  const auto plain = Gpu::open("", {.optional_features = false});
  CHECK(contains(error_of([&] { plain->compile(half); }), "kernel half does not compile"));
  CHECK(contains(error_of([&] { plain->compile(groups); }), "kernel groups does not compile"));
  if (gpu().f16()) CHECK(run(gpu(), half) == 3);
  if (gpu().subgroups())
    CHECK(run(gpu(), groups) >= static_cast<uint32_t>(gpu().adapter().subgroup_min));
}

TEST_CASE("webgpu: lists of dispatches are timed one by one") {
  const Pipeline increment = gpu().compile(increment_source());
  Buffer y = gpu().create_buffer(4);
  const BindGroup group = gpu().bind(increment, std::array{whole(y)});
  std::vector<std::vector<Dispatch>> lists(2998, {Dispatch{&increment, &group, {1, 1, 1}}});
  lists.push_back({});
  lists.push_back({lists[0][0], lists[0][0]});
  if (!gpu().timestamps()) {
    CHECK(contains(error_of([&] { gpu().submit_timed(lists); }), "how long kernels take"));
    return;
  }
  const int64_t before = gpu().counters().dispatches;
  const std::vector<double> seconds = gpu().submit_timed(lists);
  CHECK(seconds.size() == lists.size());
  CHECK(gpu().counters().dispatches == before + 3000);
  CHECK(contents<uint32_t>(gpu(), y)[0] == 3000);
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  CHECK(sum > 0);
  CHECK(sum < 60);
}

TEST_CASE("webgpu: a lost device says so and is opened again") {
  auto own = Gpu::open();
  const Pipeline increment = own->compile(increment_source());
  Buffer y = buffer_of(*own, std::vector<uint32_t>{1});
  const BindGroup group = own->bind(increment, std::array{whole(y)});
  CHECK_FALSE(own->lost());
  own->lose();
  const Dispatch dispatch{&increment, &group, {1, 1, 1}};
  std::vector<std::byte> word(4);
  const std::string error = error_of([&] {
    own->submit(std::span(&dispatch, 1));
    own->wait();
  });
  CHECK(contains(error, "was lost"));
  CHECK(contains(error, "start again from what was saved last"));
  CHECK(own->lost());
  CHECK_FALSE(own->lost_reason().empty());
  CHECK_THROWS_AS(own->create_buffer(4), DeviceLost);
  CHECK_THROWS_AS(own->read(y, 0, word), DeviceLost);
  CHECK_THROWS_AS(own->write(y, 0, word), DeviceLost);
  CHECK_THROWS_AS(own->compile(increment_source()), DeviceLost);

  const auto again = own->open_again();
  CHECK(again->adapter().name == own->adapter().name);
  own.reset();  // what it gave out outlives it
  CHECK(contents<uint32_t>(*again, buffer_of(*again, std::vector<uint32_t>{5}))[0] == 5);
}

TEST_CASE("webgpu: several threads share a GPU") {
  const Pipeline increment = gpu().compile(increment_source());
  std::vector<std::thread> threads;
  std::array<uint32_t, 4> sums{};
  for (uint32_t& sum : sums)
    threads.emplace_back([&] {
      Buffer y = gpu().create_buffer(4);
      const BindGroup group = gpu().bind(increment, std::array{whole(y)});
      const Dispatch dispatch{&increment, &group, {1, 1, 1}};
      for (int i = 0; i < 25; ++i) gpu().submit(std::span(&dispatch, 1));
      sum = contents<uint32_t>(gpu(), y)[0];
    });
  for (std::thread& thread : threads) thread.join();
  for (uint32_t sum : sums) CHECK(sum == 25);
}

TEST_CASE("webgpu: shaders are written to a folder for others to check") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("anneal-wgsl-{}", getpid())).string();
  {
    EnvironmentScope scope("ANNEAL_DUMP_WGSL", folder);
    gpu().compile(scale_source("scale by / a factor"));
  }
  const std::vector<FileEntry> files = list_files(folder, ".wgsl");
  REQUIRE(files.size() == 1);
  CHECK(contains(files[0].path, "scale_by___a_factor-"));
  CHECK(read_file(files[0].path, 1 << 20) == scale_source().wgsl);
  std::filesystem::remove_all(folder);
}

TEST_CASE("webgpu: without a library the error says what was tried and what to do") {
  {
    EnvironmentScope scope("ANNEAL_WEBGPU_LIB", "/nonexistent/libwebgpu.so");
    const std::string error = error_of([] { Gpu::open(); });
    CHECK(contains(error, "ANNEAL_WEBGPU_LIB names /nonexistent/libwebgpu.so"));
    CHECK(contains(error, "or unset it"));
    CHECK(Library::find(nullptr) == nullptr);
  }
  {
    EnvironmentScope scope("ANNEAL_WEBGPU_LIB", "libc.so.6");  // a library, but of something else
    CHECK(contains(error_of([] { adapters(); }), "it is no webgpu.h library that anneal knows"));
  }
  {
    // Where the system has none, all usual names were tried.
    EnvironmentScope unnamed("ANNEAL_WEBGPU_LIB", ""), nowhere("XDG_CACHE_HOME", "/nonexistent");
    if (std::vector<TriedLibrary> tried; !Library::find(&tried)) {
      const std::string error = error_of([] { Gpu::open(); });
      for (const char* name : {"libwebgpu_dawn.so: ", "libwgpu_native.so: ",
                               "libwebgpu_dawn.so.0: ", "/nonexistent/anneal/webgpu/"})
        CHECK_MESSAGE(contains(error, name), error);
    }
  }
  CHECK_FALSE(adapters().empty());  // and it is found again
}

TEST_CASE("webgpu: the driver of the tests is webgpu-software") {
  const std::unique_ptr<Device> device = make_webgpu_device({});
  const Target& named = *find_target("webgpu-software");
  Hardware found = device->target().hardware;
  found.memory_gb_per_second = named.hardware.memory_gb_per_second;  // which nobody measured
  found.f32_gflop_per_second = named.hardware.f32_gflop_per_second;
  CHECK(found == named.hardware);
  CHECK(device->target().tuning == named.tuning);
  Capabilities capabilities = device->capabilities();
  capabilities.memory_gb_per_second = named.hardware.memory_gb_per_second;
  capabilities.f32_gflop_per_second = named.hardware.f32_gflop_per_second;
  CHECK(capabilities == capabilities_of(named));
}
