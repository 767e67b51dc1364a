// 128-bit structural keys: a function of content alone, the same in every process. A key picks a
// bucket or an order; where identity matters, equality of the content confirms it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace anneal {

struct Key {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Key&) const = default;
};

std::string to_text(const Key& key);  // 32 hexadecimal digits

// Feeds words into two multiply-and-fold lanes. Order matters; lengths must be fed by the caller.
class KeyBuilder {
 public:
  explicit KeyBuilder(uint64_t seed) : low_(seed ^ kA), high_(seed + kB) {}

  void add(uint64_t word) {
    low_ = fold(low_ ^ word, kC ^ high_);
    high_ = fold(high_ + word, kD ^ low_);
  }
  void add(const Key& key) {
    low_ = fold(low_ ^ key.low, kC ^ key.high);
    high_ = fold(high_ ^ key.high, kD ^ low_);
  }
  void add(std::string_view text);

  Key finish() const { return {fold(high_ ^ kA, low_ ^ kB), fold(low_ ^ kD, high_ ^ kC)}; }

 private:
  static constexpr uint64_t kA = 0x9e3779b97f4a7c15u, kB = 0xd1b54a32d192ed03u;
  static constexpr uint64_t kC = 0x8bb84b93962eacc9u, kD = 0x2d358dccaa6c78a5u;

  static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(a) * b;
    // The operands are mixed back in, so that a zero factor does not erase the other one.
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (a + (b << 1));
  }

  uint64_t low_, high_;
};

}  // namespace anneal
