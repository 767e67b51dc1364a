// A set of axes by their number: of a body, or of a shape.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace anneal {

class AxisSet {
 public:
  static constexpr size_t kMost = 256;

  AxisSet() = default;
  void add(size_t axis) { words_[axis / 64] |= uint64_t{1} << axis % 64; }
  void remove(size_t axis) { words_[axis / 64] &= ~(uint64_t{1} << axis % 64); }
  bool contains(size_t axis) const { return words_[axis / 64] >> axis % 64 & 1; }
  bool empty() const { return *this == AxisSet(); }
  AxisSet operator|(const AxisSet& other) const { return zip(other, std::bit_or<>()); }
  AxisSet operator&(const AxisSet& other) const { return zip(other, std::bit_and<>()); }
  AxisSet without(const AxisSet& other) const {
    return zip(other, [](uint64_t a, uint64_t b) { return a & ~b; });
  }
  bool contains(const AxisSet& other) const { return other.without(*this).empty(); }
  friend bool operator==(const AxisSet&, const AxisSet&) = default;
  std::vector<size_t> list() const {  // increasing
    std::vector<size_t> axes;
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t word = words_[i]; word != 0; word &= word - 1)
        axes.push_back(i * 64 + static_cast<size_t>(std::countr_zero(word)));
    return axes;
  }

 private:
  template <typename Function>
  AxisSet zip(const AxisSet& other, Function function) const {
    AxisSet result;
    for (size_t i = 0; i < words_.size(); ++i)
      result.words_[i] = function(words_[i], other.words_[i]);
    return result;
  }
  std::array<uint64_t, kMost / 64> words_{};
};

}  // namespace anneal
