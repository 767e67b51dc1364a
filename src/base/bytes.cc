#include "base/bytes.h"

#include <cstdlib>
#include <new>

#include "base/huge_pages.h"

namespace anneal {

std::byte* allocate_bytes(size_t bytes) {
  const size_t rounded = (bytes + kBytesAlignment - 1) & ~(kBytesAlignment - 1);
  if (rounded < bytes) throw std::bad_alloc();
  if (rounded >= kHugePage) return static_cast<std::byte*>(allocate_pages(rounded));
  void* memory = std::aligned_alloc(kBytesAlignment, rounded);
  if (!memory) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void free_bytes(std::byte* memory) { free_pages(memory); }  // either way it came from the heap

}  // namespace anneal
