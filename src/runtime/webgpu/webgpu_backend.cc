#include "runtime/webgpu/webgpu_backend.h"

#include <algorithm>
#include <list>
#include <string>
#include <utility>

#include "codegen/wgsl/kernel_shader.h"

namespace anneal::webgpu {
namespace {

struct WebGpuCode : gpu::Code {
  using Code::Code;
  std::shared_ptr<const Pipeline> pipeline;
};
const WebGpuCode& code_of(const gpu::Launch& launch) {
  return static_cast<const WebGpuCode&>(*launch.code);
}

struct WebGpuBound : gpu::Bound {
  Buffer uniforms;  // of all launches
  std::list<BindGroup> groups;
  std::vector<Dispatch> dispatches;  // by launch; without a pipeline there is none

  std::vector<Dispatch> between(size_t begin, size_t end) const {
    std::vector<Dispatch> some;
    for (size_t i = begin; i < end; ++i)
      if (dispatches[i].pipeline) some.push_back(dispatches[i]);
    return some;
  }
};
const WebGpuBound& cast(const gpu::Bound& bound) { return static_cast<const WebGpuBound&>(bound); }

struct WebGpuCommands : gpu::Commands {
  explicit WebGpuCommands(webgpu::Commands encoded) : commands(std::move(encoded)) {}
  webgpu::Commands commands;
};

// (cells, 0, 0, 0), then the sizes as 64-bit words, two a row.
int64_t uniform_bytes_of(size_t sizes) { return 16 * (1 + (static_cast<int64_t>(sizes) + 1) / 2); }

void write_uniform(const gpu::Launch& launch, uint32_t* words) {
  words[0] = static_cast<uint32_t>(launch.cells);
  for (size_t i = 0; i < launch.sizes.size(); ++i) {
    const auto size = static_cast<uint64_t>(launch.sizes[i]);
    words[4 + 2 * i] = static_cast<uint32_t>(size);
    words[5 + 2 * i] = static_cast<uint32_t>(size >> 32);
  }
}

}  // namespace

std::vector<std::shared_ptr<const gpu::Code>> WebGpuBackend::compile(
    std::span<const gpu::CodeRequest> requests) {
  std::vector<KernelSource> sources;
  std::vector<std::shared_ptr<WebGpuCode>> made;
  for (const gpu::CodeRequest& request : requests) {
    wgsl::Shader shader = shader_of(*request.kernel, capabilities_, *request.memory);
    KernelSource source;
    source.name = request.name;
    source.wgsl = std::move(shader.text);
    for (bool only_read : shader.only_read)
      source.buffers.push_back({only_read ? Access::Read : Access::ReadWrite, 0});
    source.uniform_bytes = uniform_bytes_of(static_cast<size_t>(request.kernel->program.sizes));
    made.push_back(std::make_shared<WebGpuCode>(std::move(shader.buffers)));
    sources.push_back(std::move(source));
  }
  std::vector<std::shared_ptr<const Pipeline>> pipelines = pipelines_.compile(sources);
  for (size_t i = 0; i < made.size(); ++i) made[i]->pipeline = std::move(pipelines[i]);
  return {made.begin(), made.end()};
}

std::unique_ptr<gpu::Bound> WebGpuBackend::bind(std::span<const gpu::Launch> launches) {
  auto bound = std::make_unique<WebGpuBound>();
  // One buffer holds what all launches are given.
  const int64_t unit = std::max(16, gpu_->limits().uniform_offset_alignment);
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
  for (const gpu::Launch& launch : launches) {
    offsets.push_back(bytes);
    bytes += (uniform_bytes_of(launch.sizes.size()) + unit - 1) / unit * unit;
  }
  std::vector<uint32_t> words(static_cast<size_t>(bytes) / 4);
  for (size_t i = 0; i < launches.size(); ++i)
    write_uniform(launches[i], words.data() + offsets[i] / 4);
  bound->uniforms = gpu_->create_buffer(bytes, "sizes");
  gpu_->write(bound->uniforms, 0, std::as_bytes(std::span(words)));

  for (size_t i = 0; i < launches.size(); ++i) {
    const gpu::Launch& launch = launches[i];
    Dispatch& dispatch = bound->dispatches.emplace_back();
    if (!launch.code) continue;
    const WebGpuCode& code = code_of(launch);
    std::vector<Binding> bindings;
    int empty = 0;
    for (const gpu::Argument& argument : launch.arguments) {
      // Kernels take whole words of what they are bound to.
      const int64_t size = (std::max<int64_t>(4, argument.bytes) + 15) / 16 * 16;
      if (argument.place.memory)
        bindings.push_back({buffer_of(argument.place), argument.place.offset, size});
      else
        bindings.push_back(nothing(empty++));
    }
    bindings.push_back({&bound->uniforms, offsets[i], code.pipeline->uniform_bytes()});
    bound->groups.push_back(gpu_->bind(*code.pipeline, bindings));
    const int64_t columns = std::min(launch.cells, wgsl::kGroupsInRow);
    const int64_t rows = (launch.cells + columns - 1) / columns;
    dispatch = {code.pipeline.get(),
                &bound->groups.back(),
                {static_cast<uint32_t>(columns), static_cast<uint32_t>(rows), 1}};
  }
  return bound;
}

std::unique_ptr<gpu::Commands> WebGpuBackend::encode(const gpu::Bound& bound, size_t begin,
                                                     size_t end) {
  return std::make_unique<WebGpuCommands>(gpu_->encode(cast(bound).between(begin, end)));
}

void WebGpuBackend::submit(std::unique_ptr<gpu::Commands> commands) {
  gpu_->submit(std::move(static_cast<WebGpuCommands&>(*commands).commands));
}

std::vector<double> WebGpuBackend::submit_timed(const gpu::Bound& bound,
                                                std::span<const size_t> bounds) {
  std::vector<std::vector<Dispatch>> lists;
  for (size_t i = 0; i + 1 < bounds.size(); ++i)
    lists.push_back(cast(bound).between(bounds[i], bounds[i + 1]));
  return gpu_->submit_timed(lists);
}

// For the n-th buffer of a kernel that has no elements: what is bound for writing must not
// overlap.
Binding WebGpuBackend::nothing(int n) {
  const int64_t unit = std::max(16, gpu_->limits().storage_offset_alignment);
  std::lock_guard lock(mutex_);
  if (!nothing_) nothing_ = gpu_->create_buffer(unit * gpu_->limits().storage_buffers, "nothing");
  return {&nothing_, n * unit, 16};
}

}  // namespace anneal::webgpu
