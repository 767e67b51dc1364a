// Scratch of the workers of a ThreadPool, for the local memory of kernels.
// Must not know what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/os/huge_memory.h"

namespace anneal {

class WorkerScratch {
 public:
  // So that each of `workers` has `bytes`; may move what was there. Not while kernels run.
  void reserve(int workers, int64_t bytes);
  void* of(int worker) const { return blocks_[static_cast<size_t>(worker)].data(); }

 private:
  std::vector<HugeMemory> blocks_;
};

}  // namespace anneal
