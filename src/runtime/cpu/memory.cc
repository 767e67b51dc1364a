#include "runtime/cpu/memory.h"

#include <algorithm>

namespace anneal {
namespace {

// Small pages lie anywhere in memory, so that blocks meant to fill most of a cache meet in it by
// chance: products then take up to a quarter longer, in some processes and not in others.
constexpr size_t kWorthHugePage = size_t{128} << 10;

}  // namespace

void WorkerScratch::reserve(int workers, int64_t bytes) {
  auto wanted = static_cast<size_t>(bytes);
  if (wanted >= kWorthHugePage) wanted = std::max(wanted, kHugePageBytes);
  blocks_.resize(std::max(blocks_.size(), static_cast<size_t>(workers)));
  for (HugeMemory& block : blocks_)
    if (block.size() < wanted) block = HugeMemory(wanted);
}

}  // namespace anneal
