// Memory that was given back and is taken again: a function that is called again and again finds
// its results where the last ones were, with all that was prepared for them. The GPU works in the
// order in which it is told to, so whoever takes a buffer comes after those who had it.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "runtime/webgpu/gpu.h"

namespace anneal::webgpu {

class BufferPool {
 public:
  explicit BufferPool(Gpu& gpu) : gpu_(gpu) {}

  // With whatever is in it. OutOfGpuMemory.
  std::unique_ptr<Buffer> take(int64_t bytes);
  void give_back(std::unique_ptr<Buffer> buffer);

 private:
  static constexpr int64_t kMostBytes = int64_t{1} << 30;

  Gpu& gpu_;
  std::mutex mutex_;
  std::list<std::unique_ptr<Buffer>> free_;  // the newest first
  int64_t bytes_ = 0;                        // of them
};

}  // namespace anneal::webgpu
