#include "runtime/webgpu/buffer_pool.h"

#include <algorithm>

namespace anneal::webgpu {

std::unique_ptr<Buffer> BufferPool::take(int64_t bytes) {
  {
    std::lock_guard lock(mutex_);
    auto known =
        std::ranges::find(free_, bytes, [](const auto& buffer) { return buffer->bytes(); });
    if (known != free_.end()) {
      std::unique_ptr<Buffer> buffer = std::move(*known);
      free_.erase(known);
      bytes_ -= bytes;
      return buffer;
    }
  }
  try {
    return std::make_unique<Buffer>(gpu_.create_buffer(bytes));
  } catch (const OutOfGpuMemory&) {
    std::list<std::unique_ptr<Buffer>> unused;
    {
      std::lock_guard lock(mutex_);
      if (free_.empty()) throw;
      unused.swap(free_);
      bytes_ = 0;
    }
  }
  return std::make_unique<Buffer>(gpu_.create_buffer(bytes));
}

void BufferPool::give_back(std::unique_ptr<Buffer> buffer) {
  if (buffer->lost() || buffer->bytes() > kMostBytes) return;
  std::lock_guard lock(mutex_);
  bytes_ += buffer->bytes();
  free_.push_front(std::move(buffer));
  while (bytes_ > kMostBytes) {
    bytes_ -= free_.back()->bytes();
    free_.pop_back();
  }
}

}  // namespace anneal::webgpu
