// A bump allocator: memory is taken in large blocks and given back all at once.
// Only for trivially destructible objects.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/os/huge_pages.h"

namespace anneal {

class Arena {
 public:
  // `bytes` is rounded up to 8; the result is aligned to 8.
  void* allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > left_) grow(bytes);
    void* result = next_;
    next_ += bytes;
    left_ -= bytes;
    return result;
  }

 private:
  void grow(size_t bytes);

  struct FreePages {
    void operator()(std::byte* memory) const { free_pages(memory); }
  };
  std::vector<std::unique_ptr<std::byte, FreePages>> blocks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0, reserved_ = 0;
};

}  // namespace anneal
