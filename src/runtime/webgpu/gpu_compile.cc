// From WGSL to pipelines, and buffers bound to them.
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/os/environment.h"
#include "base/os/files.h"
#include "runtime/webgpu/gpu_state.h"

namespace anneal::webgpu {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

// With ANNEAL_DUMP_WGSL=FOLDER every shader is written there, for a second compiler to check; those
// that do not compile under a name of their own.
void dump(const KernelSource& source, bool compiles) {
  const std::string folder = environment("ANNEAL_DUMP_WGSL");
  if (folder.empty()) return;
  std::string name = source.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '-'; }, '_');
  name.resize(std::min<size_t>(name.size(), 80));
  const uint64_t hash = std::hash<std::string>{}(source.wgsl);
  const std::string path =
      fmt::format("{}/{}-{:016x}.{}", folder, name, hash, compiles ? "wgsl" : "rejected");
  if (!write_file_atomically(path, source.wgsl))
    fail(fmt::format("a shader cannot be written to {}", path),
         "make the folder of ANNEAL_DUMP_WGSL writable, or unset it");
}

// Compilers write "FILE:LINE:COLUMN error: ..." or "wgsl:LINE:COLUMN".
std::optional<size_t> line_of(std::string_view text) {
  for (size_t at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    size_t line = 0, end = at + 1;
    for (; end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])); ++end)
      line = line * 10 + static_cast<size_t>(text[end] - '0');
    const bool column = end + 1 < text.size() && text[end] == ':' &&
                        std::isdigit(static_cast<unsigned char>(text[end + 1]));
    if (line > 0 && column) return line;
  }
  return std::nullopt;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

[[noreturn]] void fail_compiling(const GpuState& state, const KernelSource& source,
                                 const std::string& text) {
  dump(source, false);
  const std::optional<size_t> line = line_of(text);
  fail(fmt::format("kernel {} does not compile on \"{}\"{}: {}", source.name, state.adapter.name,
                   line ? fmt::format(", line {}", *line) : "", trimmed(text)),
       "compute on another device (--device cpu) and report it: it is a mistake of anneal or of "
       "the GPU's driver; ANNEAL_DUMP_WGSL=FOLDER writes the shader there");
}

// A kernel on its way.
struct Attempt {
  abi::ShaderModule module = nullptr;
  GpuState::ScopeResult module_errors;
  abi::Future module_future{};
  abi::ComputePipeline pipeline = nullptr;
  abi::Future pipeline_future{};
  std::string text;
  bool made = false, done = false;
};

class Compilation {
 public:
  Compilation(GpuState& state, std::span<const KernelSource> sources)
      : state_(state), sources_(sources), attempts_(sources.size()) {}
  ~Compilation() {
    for (const Attempt& attempt : attempts_) {
      if (attempt.module) state_.library().release_shader_module(attempt.module);
      if (attempt.pipeline) state_.library().release_pipeline(attempt.pipeline);
    }
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  std::vector<Pipeline> run(const std::shared_ptr<GpuState>& owner) {
    for (size_t i = 0; i < attempts_.size(); ++i) start(sources_[i], attempts_[i]);
    for (Attempt& attempt : attempts_) {
      state_.wait(attempt.module_future, attempt.module_errors.done);
      state_.wait(attempt.pipeline_future, attempt.done);
    }
    state_.check();
    for (size_t i = 0; i < attempts_.size(); ++i) {
      const Attempt& attempt = attempts_[i];
      if (attempt.module_errors.type != abi::kNoError)
        fail_compiling(state_, sources_[i], attempt.module_errors.text);
      if (!attempt.made) fail_compiling(state_, sources_[i], attempt.text);
      dump(sources_[i], true);
    }
    std::vector<Pipeline> pipelines;
    for (size_t i = 0; i < attempts_.size(); ++i)
      pipelines.emplace_back(owner, std::exchange(attempts_[i].pipeline, nullptr), sources_[i]);
    return pipelines;
  }

 private:
  void start(const KernelSource& source, Attempt& attempt) {
    const Library& library = state_.library();
    abi::ShaderSourceWgsl text{{nullptr, abi::kShaderSourceWgsl}, view_of(source.wgsl)};
    const abi::ShaderModuleDescriptor module{&text.chain, view_of(source.name)};
    state_.push_scope(abi::kFilterValidation);
    attempt.module = library.create_shader_module(state_.device(), &module);
    attempt.module_future = state_.pop_scope(attempt.module_errors);

    abi::ComputePipelineDescriptor pipeline{};
    pipeline.label = view_of(source.name);
    pipeline.layout = state_.layout(source.buffers, source.uniform_bytes).pipeline;
    pipeline.compute.module = attempt.module;
    pipeline.compute.entry_point = view_of(source.entry_point);
    if (library.polled) return make_now(pipeline, attempt);
    attempt.pipeline_future =
        library.create_pipeline_async(state_.device(), &pipeline,
                                      {nullptr, abi::kWaitAnyOnly,
                                       [](uint32_t status, abi::ComputePipeline made,
                                          abi::StringView message, void* first, void*) {
                                         auto& to = *static_cast<Attempt*>(first);
                                         to.pipeline = made;
                                         to.made = status == abi::kSuccess;
                                         to.text = text_of(message);
                                         to.done = true;
                                       },
                                       &attempt, nullptr});
  }

  void make_now(const abi::ComputePipelineDescriptor& pipeline, Attempt& attempt) {
    state_.push_scope(abi::kFilterValidation);
    attempt.pipeline = state_.library().create_pipeline(state_.device(), &pipeline);
    GpuState::ScopeResult errors = state_.pop_scope();
    attempt.made = attempt.pipeline && errors.type == abi::kNoError;
    attempt.text = std::move(errors.text);
    attempt.done = true;
  }

  GpuState& state_;
  std::span<const KernelSource> sources_;
  std::vector<Attempt> attempts_;  // which never move: callbacks write to them
};

int64_t alignment(const Limits& limits, bool uniform) {
  return uniform ? limits.uniform_offset_alignment : limits.storage_offset_alignment;
}

}  // namespace

std::vector<Pipeline> Gpu::compile(std::span<const KernelSource> sources) {
  Lock lock(state_->mutex);
  state_->check();
  for (const KernelSource& source : sources)
    if (static_cast<int>(source.buffers.size()) > limits().storage_buffers)
      throw InternalError(fmt::format("kernel {} binds {} buffers, the GPU allows {}", source.name,
                                      source.buffers.size(), limits().storage_buffers));
  std::vector<Pipeline> pipelines = Compilation(*state_, sources).run(state_);
  state_->counters.pipelines += static_cast<int64_t>(pipelines.size());
  return pipelines;
}

Pipeline Gpu::compile(const KernelSource& source) {
  return std::move(compile(std::span(&source, 1)).front());
}

BindGroup Gpu::bind(const Pipeline& pipeline, std::span<const Binding> bindings) {
  Lock lock(state_->mutex);
  state_->check();
  const size_t buffers = pipeline.buffers().size();
  const size_t expected = buffers + (pipeline.uniform_bytes() > 0 ? 1 : 0);
  auto refuse = [&](const std::string& what) {
    throw InternalError(fmt::format("kernel {}: {}", pipeline.name(), what));
  };
  if (bindings.size() != expected)
    refuse(fmt::format("{} bindings are given, {} expected", bindings.size(), expected));
  std::vector<abi::BindGroupEntry> entries;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    const bool uniform = i >= buffers;
    const int64_t most = uniform ? limits().uniform_binding_bytes : limits().storage_binding_bytes;
    if (!binding.buffer || !*binding.buffer) refuse(fmt::format("binding {} has no buffer", i));
    if (binding.offset % alignment(limits(), uniform) != 0)
      refuse(fmt::format("binding {} begins at {}, which is no multiple of {}", i, binding.offset,
                         alignment(limits(), uniform)));
    if (binding.bytes > most)
      refuse(fmt::format("binding {} has {} bytes, the GPU allows {}", i, binding.bytes, most));
    if (binding.bytes < 0 || binding.offset < 0 ||
        binding.bytes > binding.buffer->bytes() - binding.offset)
      refuse(fmt::format("binding {} ends at {} of {} bytes", i, binding.offset + binding.bytes,
                         binding.buffer->bytes()));
    for (size_t j = 0; j < i && !uniform; ++j)
      if (bindings[j].buffer == binding.buffer &&
          pipeline.buffers()[j].access != pipeline.buffers()[i].access)
        refuse(fmt::format(
            "bindings {} and {} are of one buffer, one for reading and one for writing", j, i));
    abi::BindGroupEntry entry{};
    entry.binding = static_cast<uint32_t>(i);
    entry.buffer = binding.buffer->handle();
    entry.offset = static_cast<uint64_t>(binding.offset);
    entry.size = (static_cast<uint64_t>(std::max<int64_t>(binding.bytes, 1)) + 3) / 4 * 4;
    entries.push_back(entry);
  }
  abi::BindGroupDescriptor descriptor{};
  descriptor.label = view_of(pipeline.name());
  descriptor.layout = state_->layout(pipeline.buffers(), pipeline.uniform_bytes()).group;
  descriptor.entry_count = entries.size();
  descriptor.entries = entries.data();
  BindGroup group(state_, state_->library().create_bind_group(state_->device(), &descriptor));
  ++state_->counters.bind_groups;
  state_->check();
  return group;
}

}  // namespace anneal::webgpu
