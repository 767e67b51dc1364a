#include "base/os/huge_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/os/huge_pages.h"
#include "base/os/mutex.h"
#include "base/traffic.h"

namespace anneal {
namespace {

// Blocks below this are the C library's business, which keeps them itself.
constexpr size_t kLeastKept = size_t{64} << 10;
constexpr size_t kMostKept = size_t{2} << 30;

// What a request takes: requests of nearly the same size can use each other's blocks.
size_t capacity_of(size_t bytes) {
  const size_t unit = bytes >= kHugePageBytes ? kHugePageBytes
                      : bytes >= kLeastKept   ? kLeastKept / 4
                                              : kMemoryAlignment;
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  return rounded < bytes ? bytes : std::max(rounded, unit);
}

// More than any process can address; some allocators stop the program at such a wish.
constexpr auto kBeyondReach = static_cast<size_t>(std::min<uint64_t>(uint64_t{1} << 47, SIZE_MAX));

void* allocate(size_t capacity) {
  if (capacity >= kBeyondReach) return nullptr;
  if (capacity < kHugePageBytes) return std::aligned_alloc(kMemoryAlignment, capacity);
  try {
    return allocate_pages(capacity);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

class Keeper {
 public:
  std::byte* take(size_t bytes) {
    const size_t capacity = capacity_of(bytes);
    traffic().allocated += static_cast<int64_t>(bytes);
    {
      const Lock lock(mutex_);
      if (const auto found = blocks_.find(capacity); found != blocks_.end()) {
        kept_ -= capacity;
        return blocks_.extract(found).mapped();
      }
    }
    void* memory = allocate(capacity);
    if (!memory) {
      release();
      memory = allocate(capacity);
    }
    if (!memory) {
      fail(fmt::format("out of memory: {} bytes wanted ({:.1f} GiB)", bytes,
                       static_cast<double>(bytes) / (1 << 30)),
           "smaller batches and narrower dtypes need less");
    }
    return static_cast<std::byte*>(memory);
  }

  void give_back(std::byte* memory, size_t bytes) {
    const size_t capacity = capacity_of(bytes);
    if (capacity >= kLeastKept) {
      const Lock lock(mutex_);
      if (kept_ + capacity <= kMostKept) {
        kept_ += capacity;
        blocks_.emplace(capacity, memory);
        return;
      }
    }
    std::free(memory);
  }

  void release() {
    const Lock lock(mutex_);
    for (const auto& [capacity, memory] : blocks_) std::free(memory);
    blocks_.clear();
    kept_ = 0;
  }

  size_t kept() {
    const Lock lock(mutex_);
    return kept_;
  }

 private:
  Mutex mutex_;
  std::multimap<size_t, std::byte*> blocks_;  // by capacity
  size_t kept_ = 0;
};

// Never destroyed: blocks of static objects come back late.
Keeper& keeper() {
  static Keeper& keeper = *new Keeper;
  return keeper;
}

}  // namespace

HugeMemory::HugeMemory(size_t bytes) : data_(keeper().take(bytes)), size_(bytes) {}

HugeMemory::~HugeMemory() {
  if (data_) keeper().give_back(data_, size_);
}

HugeMemory::HugeMemory(HugeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HugeMemory& HugeMemory::operator=(HugeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

size_t kept_memory_bytes() { return keeper().kept(); }

void release_kept_memory() { keeper().release(); }

}  // namespace anneal
