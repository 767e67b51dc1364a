#include "runtime/webgpu/gpu_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/call_site.h"

namespace anneal::webgpu {
namespace {

constexpr size_t kMostStaging = 4;
constexpr size_t kMostErrors = 16;  // the first ones tell the cause

}  // namespace

GpuState::GpuState(Connection& connection, const Adapter& chosen, const GpuOptions& opened_with)
    : adapter(chosen.info()),
      options(opened_with),
      connection_(connection),
      library_(connection.library()) {
  open_device(chosen);
}

GpuState::~GpuState() {
  for (const Staging& staging : staging_) library_.release_buffer(staging.buffer);
  for (const auto& [key, layout] : layouts_) {
    library_.release_pipeline_layout(layout.pipeline);
    library_.release_bind_group_layout(layout.group);
  }
  if (queue_) library_.release_queue(queue_);
  if (!device_) return;
  library_.destroy_device(device_);  // calls back at once: nothing does so later
  library_.release_device(device_);
}

void GpuState::open_device(const Adapter& chosen) {
  const abi::FeatureNumbers& number = library_.features();
  std::vector<uint32_t> features;
  f16 = adapter.f16 && options.optional_features;
  subgroups = adapter.subgroups && options.optional_features;
  timestamps = adapter.timestamps;
  matrices = adapter.matrices && f16 && subgroups;
  if (f16) features.push_back(number.shader_f16);
  if (subgroups) features.push_back(number.subgroups);
  if (timestamps) features.push_back(number.timestamp_query);
  if (matrices) features.push_back(abi::kMatrixFeature);

  abi::Limits wanted{};
  library_.adapter_limits(chosen.handle(), &wanted);
  wanted.next = nullptr;

  // Times are exact: rounding them protects web pages from each other.
  const char* disabled[] = {"timestamp_quantization"};
  std::vector<const char*> enabled;
  if (options.trust_shaders) enabled = {"disable_robustness", "disable_workgroup_init"};
  if (matrices) enabled.insert(enabled.end(), matrix_toggles().begin(), matrix_toggles().end());
  abi::DawnToggles toggles{
      {nullptr, abi::kDawnToggles}, enabled.size(), enabled.data(), std::size(disabled), disabled};

  abi::DeviceDescriptor descriptor{};
  if (library_.dawn) descriptor.next = &toggles.chain;
  descriptor.label = view_of("anneal");
  descriptor.feature_count = features.size();
  descriptor.features = features.data();
  descriptor.limits = options.minimum_limits ? nullptr : &wanted;
  descriptor.device_lost = {
      nullptr, abi::kSpontaneous,
      [](const abi::Device*, uint32_t reason, abi::StringView text, void* first, void*) {
        static_cast<GpuState*>(first)->note_loss(reason, text_of(text));
      },
      this, nullptr};
  descriptor.uncaptured_error = {
      nullptr,
      [](const abi::Device*, uint32_t, abi::StringView text, void* first, void*) {
        static_cast<GpuState*>(first)->note_error(text_of(text));
      },
      this, nullptr};

  struct Answer {
    abi::Device device = nullptr;
    std::string text;
    bool done = false;
  } answer;
  const abi::Future future = library_.request_device(
      chosen.handle(), &descriptor,
      {nullptr, connection_.callback_mode(),
       [](uint32_t status, abi::Device device, abi::StringView text, void* first, void*) {
         auto& to = *static_cast<Answer*>(first);
         to.device = status == abi::kSuccess ? device : nullptr;
         to.text = text_of(text);
         to.done = true;
       },
       &answer, nullptr});
  connection_.wait(future, answer.done);
  if (!answer.device)
    fail(fmt::format("the GPU \"{}\" cannot be opened: {}", adapter.name, answer.text),
         "end other programs that use it, update its driver, or choose another with --adapter");
  device_ = answer.device;
  queue_ = library_.get_queue(device_);
  abi::Limits actual{};
  library_.device_limits(device_, &actual);
  limits = limits_of(actual);
}

// ---- what went wrong

void GpuState::note_loss(uint32_t reason, std::string text) {
  std::lock_guard guard(news_mutex_);
  if (lost) return;
  lost_reason_ = text.empty() ? fmt::format("reason {}", reason) : std::move(text);
  lost = true;
}

void GpuState::note_error(std::string text) {
  std::lock_guard guard(news_mutex_);
  if (errors_.size() < kMostErrors) errors_.push_back(std::move(text));
}

std::string GpuState::lost_reason() {
  std::lock_guard guard(news_mutex_);
  return lost_reason_;
}

void GpuState::check() {
  if (lost)
    throw DeviceLost(
        fmt::format("the GPU \"{}\" was lost: {}", adapter.name, lost_reason()),
        "what it alone held is gone: start again from what was saved last; if it happens again, "
        "use smaller sizes or look for a newer driver",
        {});
  std::lock_guard guard(news_mutex_);
  if (errors_.empty()) return;
  const std::string first = errors_.front();
  errors_.clear();
  throw InternalError("WebGPU refuses what it was given: " + first);
}

abi::Future GpuState::pop_scope(ScopeResult& result) {
  return library_.pop_error_scope(
      device_, {nullptr, connection_.callback_mode(),
                [](uint32_t, uint32_t type, abi::StringView text, void* first, void*) {
                  auto& to = *static_cast<ScopeResult*>(first);
                  to.type = type;
                  to.text = text_of(text);
                  to.done = true;
                },
                &result, nullptr});
}

GpuState::ScopeResult GpuState::pop_scope() {
  ScopeResult result;
  wait(pop_scope(result), result.done);
  return result;
}

// ---- work

void GpuState::wait_for_work() {
  if (library_.polled)
    library_.poll_device(device_, 1, nullptr);
  else
    connection_.wait(
        library_.work_done(queue_, {nullptr, abi::kWaitAnyOnly, [] {}, nullptr, nullptr}));
  check();
}

void GpuState::bound_queue() {
  constexpr size_t kMostUnderWay = 2;
  // Of a library that is polled only the end of everything can be waited for.
  under_way_.push_back(library_.polled ? abi::Future{}
                                       : library_.work_done(queue_, {nullptr, abi::kWaitAnyOnly,
                                                                     [] {}, nullptr, nullptr}));
  if (under_way_.size() <= kMostUnderWay) return;
  if (library_.polled) {
    under_way_.clear();
    return wait_for_work();
  }
  connection_.wait(under_way_.front());
  under_way_.pop_front();
  check();
}

abi::CommandEncoder GpuState::encoder() {
  return library_.create_command_encoder(device_, nullptr);
}

abi::CommandBuffer GpuState::finish(abi::CommandEncoder encoder) {
  abi::CommandBuffer commands = library_.finish(encoder, nullptr);
  library_.release_command_encoder(encoder);
  return commands;
}

void GpuState::submit(abi::CommandBuffer commands) {
  library_.submit(queue_, 1, &commands);
  ++counters.submits;
  check();
}

void GpuState::finish_and_submit(abi::CommandEncoder encoder) {
  abi::CommandBuffer commands = finish(encoder);
  submit(commands);
  library_.release_command_buffer(commands);
}

// ---- memory

abi::Buffer GpuState::create_buffer(uint64_t bytes, uint64_t usage, std::string_view label) {
  abi::BufferDescriptor descriptor{};
  descriptor.label = view_of(label);
  descriptor.usage = usage;
  descriptor.size = bytes;
  push_scope(abi::kFilterOutOfMemory);
  abi::Buffer buffer = library_.create_buffer(device_, &descriptor);
  const ScopeResult result = pop_scope();
  if (result.type == abi::kNoError && buffer && !lost) return buffer;
  if (buffer) library_.release_buffer(buffer);
  check();
  throw OutOfGpuMemory();
}

abi::Buffer GpuState::take_staging(uint64_t bytes) {
  const auto fits = std::ranges::find(staging_, bytes, &Staging::bytes);
  if (fits == staging_.end())
    return create_buffer(bytes, abi::kMapRead | abi::kCopyTarget, "staging");
  abi::Buffer buffer = fits->buffer;
  staging_.erase(fits);
  return buffer;
}

void GpuState::give_back_staging(abi::Buffer buffer, uint64_t bytes) {
  staging_.push_back({buffer, bytes});
  if (staging_.size() <= kMostStaging) return;
  library_.release_buffer(staging_.front().buffer);  // the one that was not used for longest
  staging_.erase(staging_.begin());
}

// ---- layouts

const GpuState::Layout& GpuState::layout(const std::vector<BufferSlot>& buffers,
                                         int64_t uniform_bytes) {
  LayoutKey key{uniform_bytes};
  for (const BufferSlot& slot : buffers) {
    key.push_back(static_cast<int64_t>(slot.access));
    key.push_back(slot.min_bytes);
  }
  auto [entry, fresh] = layouts_.try_emplace(std::move(key));
  if (!fresh) return entry->second;

  std::vector<abi::BindGroupLayoutEntry> entries;
  auto add = [&](uint32_t type, int64_t min_bytes) {
    abi::BindGroupLayoutEntry binding{};
    binding.binding = static_cast<uint32_t>(entries.size());
    binding.visibility = abi::kComputeStage;
    binding.buffer.type = type;
    binding.buffer.min_binding_size = static_cast<uint64_t>(min_bytes);
    entries.push_back(binding);
  };
  for (const BufferSlot& slot : buffers)
    add(slot.access == Access::Read ? abi::kReadOnlyBinding : abi::kStorageBinding, slot.min_bytes);
  if (uniform_bytes > 0) add(abi::kUniformBinding, uniform_bytes);

  std::vector<abi::BindGroupLayoutEntryWithoutArrays> older;
  for (const abi::BindGroupLayoutEntry& e : entries)
    older.push_back({e.next, e.binding, e.visibility, e.buffer, e.others});
  const bool without_arrays = library_.wgpu_native_of_2025();

  abi::BindGroupLayoutDescriptor group{};
  group.entry_count = entries.size();
  group.entries = without_arrays ? static_cast<const void*>(older.data())
                                 : static_cast<const void*>(entries.data());
  entry->second.group = library_.create_bind_group_layout(device_, &group);
  abi::PipelineLayoutDescriptor pipeline{};
  pipeline.layout_count = 1;
  pipeline.layouts = &entry->second.group;
  entry->second.pipeline = library_.create_pipeline_layout(device_, &pipeline);
  return entry->second;
}

}  // namespace anneal::webgpu
