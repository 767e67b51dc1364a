// What a Gpu and all it gave out share: the device, its queue, its lock, what went wrong on it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/webgpu/gpu.h"

namespace anneal::webgpu {

class GpuState : public std::enable_shared_from_this<GpuState> {
 public:
  GpuState(Connection& connection, const Adapter& adapter, const GpuOptions& options);
  ~GpuState();
  GpuState(const GpuState&) = delete;
  GpuState& operator=(const GpuState&) = delete;

  const Library& library() const { return library_; }
  abi::Device device() const { return device_; }
  abi::Queue queue() const { return queue_; }

  // What is below is called with the lock held.

  void wait(abi::Future future, const bool& done) const { connection_.wait(future, done, device_); }
  // Throws DeviceLost if the device is, and an InternalError for errors that nobody asked for.
  void check();
  void wait_for_work();

  abi::Buffer create_buffer(uint64_t bytes, uint64_t usage, std::string_view label);

  // Errors of what is called between the two, as text; empty: none.
  struct ScopeResult {
    std::string text;
    uint32_t type = abi::kNoError;
    bool done = false;
  };
  void push_scope(abi::ErrorFilter filter) { library_.push_error_scope(device_, filter); }
  abi::Future pop_scope(ScopeResult& result);
  ScopeResult pop_scope();

  struct Layout {
    abi::BindGroupLayout group = nullptr;
    abi::PipelineLayout pipeline = nullptr;
  };
  const Layout& layout(const std::vector<BufferSlot>& buffers, int64_t uniform_bytes);

  // Memory that data passes through on its way to the host: kept for the next who asks.
  abi::Buffer take_staging(uint64_t bytes);
  void give_back_staging(abi::Buffer buffer, uint64_t bytes);

  abi::CommandEncoder encoder();
  abi::CommandBuffer finish(abi::CommandEncoder encoder);  // which it ends
  void submit(abi::CommandBuffer commands);
  void finish_and_submit(abi::CommandEncoder encoder);
  // Waits until no more than a few submits are under way, so that whoever never waits does not
  // fill the queue.
  void bound_queue();

  std::recursive_mutex mutex;  // what was given out is given back while a call is under way
  AdapterInfo adapter;
  Limits limits;
  GpuOptions options;
  bool f16 = false, subgroups = false, timestamps = false, matrices = false;
  GpuCounters counters;

  // Set by callbacks, which may come on any thread.
  std::atomic<bool> lost = false;
  std::string lost_reason();
  void note_loss(uint32_t reason, std::string text);
  void note_error(std::string text);

 private:
  void open_device(const Adapter& adapter);

  Connection& connection_;
  const Library& library_;
  abi::Device device_ = nullptr;
  abi::Queue queue_ = nullptr;

  using LayoutKey = std::vector<int64_t>;
  std::map<LayoutKey, Layout> layouts_;
  struct Staging {
    abi::Buffer buffer;
    uint64_t bytes;
  };
  std::vector<Staging> staging_;
  std::deque<abi::Future> under_way_;  // what bound_queue() may have to wait for

  std::mutex news_mutex_;  // of what follows
  std::string lost_reason_;
  std::vector<std::string> errors_;
};

}  // namespace anneal::webgpu
