#include "runtime/cpu/memory.h"

#include <algorithm>

namespace anneal {

void WorkerScratch::reserve(int workers, int64_t bytes) {
  blocks_.resize(std::max(blocks_.size(), static_cast<size_t>(workers)));
  for (HugeMemory& block : blocks_) {
    if (block.size() < static_cast<size_t>(bytes)) block = HugeMemory(static_cast<size_t>(bytes));
  }
}

}  // namespace anneal
