// A GPU to compute on, over WebGPU: memory, kernels made of WGSL, and runs of many kernels at once.
// Knows nothing of tensors or schedules. Every call may come from any thread; calls of one Gpu wait
// for each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/error.h>

#include "runtime/webgpu/adapter.h"

namespace anneal::webgpu {

class GpuState;

struct GpuOptions {
  bool minimum_limits = false;    // those that every WebGPU has, whatever the adapter could do
  bool optional_features = true;  // f16 and subgroups, where the adapter has them
  // Leaves out what protects against shaders of strangers: checks of indices, and memory of
  // workgroups set to zero. Dawn's alone.
  bool trust_shaders = false;
  bool matrices = false;  // units for them and what they need, where the adapter has all of that
};

// The GPU went away: its driver was reset, or it was unplugged. What its buffers held is gone;
// Gpu::open_again() gives a new one.
class DeviceLost : public UserError {
 public:
  using UserError::UserError;
};

// The GPU has no room for a buffer.
class OutOfGpuMemory : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "the GPU has no memory left"; }
};

// ---- what a Gpu gives out; each keeps the device alive, and gives itself back when it ends

// Memory of the GPU, all zero at first.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<GpuState> state, abi::Buffer handle, int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  int64_t bytes() const { return bytes_; }  // as asked for; what follows up to the next 16 is free
  explicit operator bool() const { return handle_ != nullptr; }
  abi::Buffer handle() const { return handle_; }
  bool lost() const;  // with the GPU

 private:
  std::shared_ptr<GpuState> state_;
  abi::Buffer handle_ = nullptr;
  int64_t bytes_ = 0;
};

enum class Access { Read, ReadWrite };  // var<storage, read>, var<storage, read_write>

struct BufferSlot {
  Access access = Access::Read;
  int64_t min_bytes = 0;  // less is an error when it is bound, not when it runs
};

// A kernel as text. Buffers are @group(0) @binding(0), (1), ... in order; the uniform follows them.
struct KernelSource {
  std::string name;  // in messages and timings
  std::string wgsl;
  std::vector<BufferSlot> buffers;
  int64_t uniform_bytes = 0;  // of var<uniform>; 0: there is none
  std::string entry_point = "main";
};

class Pipeline {
 public:
  Pipeline() = default;
  Pipeline(std::shared_ptr<GpuState> state, abi::ComputePipeline handle,
           const KernelSource& source);
  ~Pipeline();
  Pipeline(Pipeline&& other) noexcept;
  Pipeline& operator=(Pipeline&& other) noexcept;

  const std::string& name() const { return name_; }
  const std::vector<BufferSlot>& buffers() const { return buffers_; }
  int64_t uniform_bytes() const { return uniform_bytes_; }
  abi::ComputePipeline handle() const { return handle_; }

 private:
  std::shared_ptr<GpuState> state_;
  abi::ComputePipeline handle_ = nullptr;
  std::string name_;
  std::vector<BufferSlot> buffers_;
  int64_t uniform_bytes_ = 0;
};

// A stretch of a buffer for a kernel. The offset is a multiple of the adapter's alignment.
struct Binding {
  const Buffer* buffer = nullptr;
  int64_t offset = 0;
  int64_t bytes = 0;
};

class BindGroup {
 public:
  BindGroup() = default;
  BindGroup(std::shared_ptr<GpuState> state, abi::BindGroup handle);
  ~BindGroup();
  BindGroup(BindGroup&& other) noexcept;
  BindGroup& operator=(BindGroup&& other) noexcept;

  abi::BindGroup handle() const { return handle_; }

 private:
  std::shared_ptr<GpuState> state_;
  abi::BindGroup handle_ = nullptr;
};

// One launch. Each sees what those before it wrote.
struct Dispatch {
  const Pipeline* pipeline = nullptr;
  const BindGroup* bindings = nullptr;
  std::array<uint32_t, 3> workgroups{1, 1, 1};
};

// Launches that were asked for and not yet run.
class Commands {
 public:
  Commands() = default;
  Commands(std::shared_ptr<GpuState> state, abi::CommandBuffer handle, int64_t dispatches);
  ~Commands();
  Commands(Commands&& other) noexcept;
  Commands& operator=(Commands&& other) noexcept;

  explicit operator bool() const { return handle_ != nullptr; }
  abi::CommandBuffer handle() const { return handle_; }
  int64_t dispatches() const { return dispatches_; }

 private:
  std::shared_ptr<GpuState> state_;
  abi::CommandBuffer handle_ = nullptr;
  int64_t dispatches_ = 0;
};

struct ReadRequest {
  const Buffer* buffer = nullptr;
  int64_t offset = 0;
  std::span<std::byte> to;
};

// What was done so far, in numbers.
struct GpuCounters {
  int64_t submits = 0, dispatches = 0;
  int64_t buffers_created = 0, bytes_allocated = 0;  // staging not counted
  int64_t bytes_written = 0, bytes_read = 0;
  int64_t pipelines = 0, bind_groups = 0;
};

// ---- the GPU

class Gpu {
 public:
  // `selector`: see choose_adapter(). A UserError where there is no library or no such GPU.
  static std::unique_ptr<Gpu> open(std::string_view selector = "", const GpuOptions& options = {});
  // A new device of the same adapter and options, after the old one was lost.
  std::unique_ptr<Gpu> open_again() const;

  const AdapterInfo& adapter() const;
  const Limits& limits() const;  // of this device
  bool f16() const;
  bool subgroups() const;
  bool timestamps() const;
  bool matrices() const;  // were wished for, and are there; see AdapterInfo::matrices
  GpuCounters counters() const;

  // For storage and uniforms, all zero. OutOfGpuMemory; a UserError above limits().buffer_bytes.
  Buffer create_buffer(int64_t bytes, std::string_view label = "buffer");

  // Any offset and length. Ordered with what is submitted before and after.
  void write(const Buffer& to, int64_t offset, std::span<const std::byte> bytes);
  // Waits. Many stretches cost little more than one.
  void read(const Buffer& from, int64_t offset, std::span<std::byte> bytes);
  void read(std::span<const ReadRequest> requests);
  // Offsets and length are multiples of 4, or the length ends with both buffers. Does not wait.
  void copy(const Buffer& from, int64_t from_offset, const Buffer& to, int64_t to_offset,
            int64_t bytes);

  // All at the same time. A UserError for the first that does not compile.
  std::vector<Pipeline> compile(std::span<const KernelSource> sources);
  Pipeline compile(const KernelSource& source);

  // One for each buffer of the pipeline, then the uniform. A buffer that is bound for writing
  // anywhere in the group must be bound for writing everywhere in it: that is WebGPU's rule.
  BindGroup bind(const Pipeline& pipeline, std::span<const Binding> bindings);

  // For one submit.
  Commands encode(std::span<const Dispatch> dispatches);
  // All of them in one submit. Waits only for what was submitted long before.
  void submit(Commands commands);
  void submit(std::span<const Dispatch> dispatches) { submit(encode(dispatches)); }
  // The same for several lists, one after another: waits, and gives the seconds of each, by the
  // clock of the GPU. A UserError where timestamps() is false.
  std::vector<double> submit_timed(std::span<const std::vector<Dispatch>> lists);
  // Until all that was submitted has ended.
  void wait();

  // Set once and for ever; every call then throws DeviceLost.
  bool lost() const;
  std::string lost_reason() const;
  // Loses it on purpose, for tests.
  void lose();

 private:
  explicit Gpu(std::shared_ptr<GpuState> state, std::string selector);

  std::shared_ptr<GpuState> state_;
  std::string selector_;
};

}  // namespace anneal::webgpu
