#include "base/key.h"

#include <cstring>

#include <fmt/format.h>

namespace anneal {

std::string to_text(const Key& key) { return fmt::format("{:016x}{:016x}", key.high, key.low); }

void KeyBuilder::add(std::string_view text) {
  add(text.size());
  for (size_t at = 0; at < text.size(); at += 8) {
    uint64_t word = 0;
    // Bytes are placed by value, not copied, so that the key does not depend on endianness.
    for (size_t i = 0; i < 8 && at + i < text.size(); ++i)
      word |= static_cast<uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
    add(word);
  }
}

}  // namespace anneal
