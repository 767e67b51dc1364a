#include "base/os/huge_pages.h"

#include <cstdlib>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace anneal {

void* allocate_pages(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (bytes < kHugePage) {
    void* memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  size_t rounded = (bytes + kHugePage - 1) & ~(kHugePage - 1);
  if (rounded < bytes) throw std::bad_alloc();
  void* memory = std::aligned_alloc(kHugePage, rounded);
  if (!memory) throw std::bad_alloc();
#ifdef __linux__
  madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: small pages work too
#endif
  return memory;
}

void free_pages(void* memory) { std::free(memory); }

}  // namespace anneal
