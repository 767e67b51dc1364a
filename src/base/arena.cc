#include "base/arena.h"

#include <algorithm>

namespace anneal {

void Arena::grow(size_t bytes) {
  // Blocks double up to 4 MiB: small graphs stay small, large ones take few blocks.
  size_t doubled = std::clamp(reserved_, size_t{1} << 14, size_t{1} << 22);
  size_t size = std::max(bytes, doubled);
  blocks_.emplace_back(static_cast<std::byte*>(allocate_pages(size)));
  next_ = blocks_.back().get();
  left_ = size;
  reserved_ += size;
}

}  // namespace anneal
