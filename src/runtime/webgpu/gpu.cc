#include "runtime/webgpu/gpu.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/call_site.h"
#include "runtime/webgpu/gpu_state.h"
#include "runtime/webgpu/software_driver.h"

namespace anneal::webgpu {
namespace {

constexpr uint64_t kBufferUsage =
    abi::kStorage | abi::kUniform | abi::kCopySource | abi::kCopyTarget;
// Room for a vec4 at the end, whatever the length.
constexpr int64_t kBufferGranularity = 16;
// WebGPU allows 4096 queries a set, two a pass.
constexpr size_t kTimedAtOnce = 2048;

using Lock = std::lock_guard<std::recursive_mutex>;

class Pass {
 public:
  Pass(GpuState& state, abi::CommandEncoder encoder, const abi::TimestampWrites* times = nullptr)
      : library_(state.library()),
        most_(static_cast<uint32_t>(state.limits.workgroups_per_dimension)) {
    abi::TimestampWritesWithoutChain older{};
    if (times) older = {times->query_set, times->begin_index, times->end_index};
    abi::ComputePassDescriptor descriptor{};
    if (times)
      descriptor.timestamp_writes = library_.wgpu_native_of_2025()
                                        ? static_cast<const void*>(&older)
                                        : static_cast<const void*>(times);
    pass_ = library_.begin_compute_pass(encoder, &descriptor);
  }
  ~Pass() {
    library_.end_compute_pass(pass_);
    library_.release_compute_pass(pass_);
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void add(const Dispatch& dispatch) {
    const auto [x, y, z] = dispatch.workgroups;
    if (x > most_ || y > most_ || z > most_)
      throw InternalError(fmt::format("kernel {} wants {} x {} x {} workgroups, the GPU takes {}",
                                      dispatch.pipeline->name(), x, y, z, most_));
    if (x == 0 || y == 0 || z == 0) return;
    if (pipeline_ != dispatch.pipeline->handle())
      library_.set_pipeline(pass_, pipeline_ = dispatch.pipeline->handle());
    if (bindings_ != dispatch.bindings->handle())
      library_.set_bind_group(pass_, 0, bindings_ = dispatch.bindings->handle(), 0, nullptr);
    library_.dispatch(pass_, x, y, z);
  }

 private:
  const Library& library_;
  uint32_t most_;
  abi::ComputePass pass_ = nullptr;
  abi::ComputePipeline pipeline_ = nullptr;
  abi::BindGroup bindings_ = nullptr;
};

class QuerySet {
 public:
  QuerySet(GpuState& state, size_t count) : library_(state.library()) {
    abi::QuerySetDescriptor descriptor{};
    descriptor.type = abi::kTimestampQueries;
    descriptor.count = static_cast<uint32_t>(count);
    handle_ = library_.create_query_set(state.device(), &descriptor);
  }
  ~QuerySet() {
    library_.destroy_query_set(handle_);
    library_.release_query_set(handle_);
  }
  QuerySet(const QuerySet&) = delete;
  QuerySet& operator=(const QuerySet&) = delete;
  abi::QuerySet handle() const { return handle_; }

 private:
  const Library& library_;
  abi::QuerySet handle_ = nullptr;
};

}  // namespace

// ---- what is given out

Buffer::Buffer(std::shared_ptr<GpuState> state, abi::Buffer handle, int64_t bytes)
    : state_(std::move(state)), handle_(handle), bytes_(bytes) {}
Buffer::~Buffer() {
  if (!handle_) return;
  Lock lock(state_->mutex);
  state_->library().destroy_buffer(handle_);  // its memory is free now, not when all forgot it
  state_->library().release_buffer(handle_);
}
Buffer::Buffer(Buffer&& other) noexcept
    : state_(std::move(other.state_)),
      handle_(std::exchange(other.handle_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
bool Buffer::lost() const { return state_ && state_->lost; }

Pipeline::Pipeline(std::shared_ptr<GpuState> state, abi::ComputePipeline handle,
                   const KernelSource& source)
    : state_(std::move(state)),
      handle_(handle),
      name_(source.name),
      buffers_(source.buffers),
      uniform_bytes_(source.uniform_bytes) {}
Pipeline::~Pipeline() {
  if (!handle_) return;
  Lock lock(state_->mutex);
  state_->library().release_pipeline(handle_);
}
Pipeline::Pipeline(Pipeline&& other) noexcept
    : state_(std::move(other.state_)),
      handle_(std::exchange(other.handle_, nullptr)),
      name_(std::move(other.name_)),
      buffers_(std::move(other.buffers_)),
      uniform_bytes_(other.uniform_bytes_) {}
Pipeline& Pipeline::operator=(Pipeline&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  std::swap(buffers_, other.buffers_);
  std::swap(uniform_bytes_, other.uniform_bytes_);
  return *this;
}

BindGroup::BindGroup(std::shared_ptr<GpuState> state, abi::BindGroup handle)
    : state_(std::move(state)), handle_(handle) {}
BindGroup::~BindGroup() {
  if (!handle_) return;
  Lock lock(state_->mutex);
  state_->library().release_bind_group(handle_);
}
BindGroup::BindGroup(BindGroup&& other) noexcept
    : state_(std::move(other.state_)), handle_(std::exchange(other.handle_, nullptr)) {}
BindGroup& BindGroup::operator=(BindGroup&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
  return *this;
}

Commands::Commands(std::shared_ptr<GpuState> state, abi::CommandBuffer handle, int64_t dispatches)
    : state_(std::move(state)), handle_(handle), dispatches_(dispatches) {}
Commands::~Commands() {
  if (!handle_) return;
  Lock lock(state_->mutex);
  state_->library().release_command_buffer(handle_);
}
Commands::Commands(Commands&& other) noexcept
    : state_(std::move(other.state_)),
      handle_(std::exchange(other.handle_, nullptr)),
      dispatches_(other.dispatches_) {}
Commands& Commands::operator=(Commands&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
  std::swap(dispatches_, other.dispatches_);
  return *this;
}

// ---- the GPU

Gpu::Gpu(std::shared_ptr<GpuState> state, std::string selector)
    : state_(std::move(state)), selector_(std::move(selector)) {}

std::unique_ptr<Gpu> Gpu::open(std::string_view selector, const GpuOptions& options) {
  if (selector == kSoftware) use_software_driver();
  Connection& connection = Connection::get();
  const Adapter adapter = choose_adapter(
      connection, selector, {.matrices = options.matrices && options.optional_features});
  return std::unique_ptr<Gpu>(
      new Gpu(std::make_shared<GpuState>(connection, adapter, options), std::string(selector)));
}

std::unique_ptr<Gpu> Gpu::open_again() const { return open(selector_, state_->options); }

const AdapterInfo& Gpu::adapter() const { return state_->adapter; }
const Limits& Gpu::limits() const { return state_->limits; }
bool Gpu::f16() const { return state_->f16; }
bool Gpu::subgroups() const { return state_->subgroups; }
bool Gpu::timestamps() const { return state_->timestamps; }
bool Gpu::matrices() const { return state_->matrices; }
GpuCounters Gpu::counters() const {
  Lock lock(state_->mutex);
  return state_->counters;
}

Buffer Gpu::create_buffer(int64_t bytes, std::string_view label) {
  Lock lock(state_->mutex);
  state_->check();
  if (bytes < 0) throw InternalError(fmt::format("a buffer of {} bytes", bytes));
  if (bytes > limits().buffer_bytes)
    fail(fmt::format("{} needs a buffer of {} bytes, the GPU \"{}\" allows {}", label, bytes,
                     adapter().name, limits().buffer_bytes),
         "use smaller sizes or a narrower dtype, or another device with --device");
  const int64_t padded =
      std::max((bytes + kBufferGranularity - 1) / kBufferGranularity, int64_t{1}) *
      kBufferGranularity;
  abi::Buffer handle = state_->create_buffer(static_cast<uint64_t>(padded), kBufferUsage, label);
  ++state_->counters.buffers_created;
  state_->counters.bytes_allocated += padded;
  return {state_, handle, bytes};
}

Commands Gpu::encode(std::span<const Dispatch> dispatches) {
  Lock lock(state_->mutex);
  state_->check();
  abi::CommandEncoder encoder = state_->encoder();
  {
    Pass pass(*state_, encoder);
    for (const Dispatch& dispatch : dispatches) pass.add(dispatch);
  }
  return {state_, state_->finish(encoder), std::ssize(dispatches)};
}

void Gpu::submit(Commands commands) {
  Lock lock(state_->mutex);
  state_->check();
  state_->counters.dispatches += commands.dispatches();
  state_->submit(commands.handle());
  state_->bound_queue();
}

std::vector<double> Gpu::submit_timed(std::span<const std::vector<Dispatch>> lists) {
  if (!timestamps())
    fail(fmt::format("the GPU \"{}\" does not tell how long kernels take", adapter().name),
         "measure whole runs instead, or choose another GPU with --adapter");
  Lock lock(state_->mutex);
  state_->check();
  std::vector<double> seconds;
  for (size_t begin = 0; begin < lists.size(); begin += kTimedAtOnce) {
    const auto part = lists.subspan(begin, std::min(kTimedAtOnce, lists.size() - begin));
    const size_t count = 2 * part.size();
    const QuerySet queries(*state_, count);
    const auto bytes = static_cast<int64_t>(count * sizeof(uint64_t));
    const Buffer resolved(state_,
                          state_->create_buffer(static_cast<uint64_t>(bytes),
                                                abi::kQueryResolve | abi::kCopySource, "times"),
                          bytes);
    abi::CommandEncoder encoder = state_->encoder();
    for (size_t i = 0; i < part.size(); ++i) {
      const auto first = static_cast<uint32_t>(2 * i);
      const abi::TimestampWrites writes{nullptr, queries.handle(), first, first + 1};
      Pass pass(*state_, encoder, &writes);
      for (const Dispatch& dispatch : part[i]) pass.add(dispatch);
      state_->counters.dispatches += static_cast<int64_t>(part[i].size());
    }
    state_->library().resolve_queries(encoder, queries.handle(), 0, static_cast<uint32_t>(count),
                                      resolved.handle(), 0);
    state_->finish_and_submit(encoder);
    std::vector<uint64_t> times(count);
    read(resolved, 0, std::as_writable_bytes(std::span(times)));
    for (size_t i = 0; i < count; i += 2)
      seconds.push_back(
          times[i + 1] > times[i] ? static_cast<double>(times[i + 1] - times[i]) * 1e-9 : 0);
  }
  return seconds;
}

void Gpu::wait() {
  Lock lock(state_->mutex);
  state_->check();
  state_->wait_for_work();
}

bool Gpu::lost() const { return state_->lost; }
std::string Gpu::lost_reason() const { return state_->lost_reason(); }

void Gpu::lose() {
  Lock lock(state_->mutex);
  if (state_->library().force_loss)
    state_->library().force_loss(state_->device(), abi::kLostUnknown, view_of("lost on purpose"));
  else
    state_->library().destroy_device(state_->device());
}

}  // namespace anneal::webgpu
