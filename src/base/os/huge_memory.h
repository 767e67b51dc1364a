// Memory for tensors, plans and the scratch of kernels: large blocks on huge pages, kept for the
// next one who asks. Must not know what is in them.
#pragma once

#include <cstddef>

namespace anneal {

inline constexpr size_t kMemoryAlignment = 64;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// A block, uninitialised, aligned to kMemoryAlignment, from 2 MiB on to huge pages. Where there is
// no memory a UserError says how much was wanted.
class HugeMemory {
 public:
  HugeMemory() = default;
  explicit HugeMemory(size_t bytes);
  ~HugeMemory();
  HugeMemory(HugeMemory&& other) noexcept;
  HugeMemory& operator=(HugeMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }  // as asked for

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Blocks that were given back and wait for the next who asks.
size_t kept_memory_bytes();
void release_kept_memory();

}  // namespace anneal
