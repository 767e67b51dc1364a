// Memory for large tables. From 2 MiB up it asks for huge pages: touching fresh memory and looking
// things up at random places both cost several times less there.
#pragma once

#include <cstddef>

namespace anneal {

void* allocate_pages(size_t bytes);  // throws std::bad_alloc
void free_pages(void* memory);

// For std::vector and its like.
template <typename T>
struct PageAllocator {
  using value_type = T;

  PageAllocator() = default;
  template <typename U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    return static_cast<T*>(
        allocate_pages(count * sizeof(T)));  // NOLINT(bugprone-sizeof-expression)
  }
  void deallocate(T* memory, size_t) { free_pages(memory); }

  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

}  // namespace anneal
