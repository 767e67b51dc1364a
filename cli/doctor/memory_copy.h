// Copying memory: the speed that work bound by memory is compared with.
#pragma once

#include <cstddef>
#include <vector>

#include "base/os/huge_pages.h"

namespace anneal::cli {

// Two blocks far larger than caches that many threads copy, one into the other.
class MemoryCopy {
 public:
  explicit MemoryCopy(int threads);
  double run();  // seconds it took

  static constexpr double gigabytes() { return 2e-9 * kBytes; }  // read and written by a run

 private:
  static constexpr size_t kBytes = size_t{64} << 20;

  int threads_;
  std::vector<char, PageAllocator<char>> from_, to_;
};

}  // namespace anneal::cli
