#include "base/os/executable_memory.h"

#include <sys/mman.h>

namespace anneal {

std::byte* map_writable(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

bool make_executable(std::byte* memory, size_t bytes) {
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) return false;
  // Processors other than x86 may have read old bytes as instructions.
  __builtin___clear_cache(reinterpret_cast<char*>(memory), reinterpret_cast<char*>(memory + bytes));
  return true;
}

void unmap(std::byte* memory, size_t bytes) { munmap(memory, bytes); }

}  // namespace anneal
