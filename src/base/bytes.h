// Memory for the elements of a tensor: aligned for every vector width, in huge pages when large,
// and not cleared, for whoever asks for it writes all of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>

#include "base/os/huge_memory.h"

namespace anneal {

class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size) : memory_(size ? HugeMemory(size) : HugeMemory()) {}
  explicit Bytes(std::span<const std::byte> contents) : Bytes(contents.size()) {
    if (!contents.empty()) std::memcpy(data(), contents.data(), contents.size());
  }
  Bytes(std::initializer_list<std::byte> contents)
      : Bytes(std::span<const std::byte>(contents.begin(), contents.size())) {}
  Bytes(const Bytes& other) : Bytes(std::span<const std::byte>(other)) {}
  Bytes& operator=(const Bytes& other) { return *this = Bytes(other); }
  Bytes(Bytes&& other) noexcept = default;
  Bytes& operator=(Bytes&& other) noexcept = default;

  size_t size() const { return memory_.size(); }
  std::byte* data() { return memory_.data(); }
  const std::byte* data() const { return memory_.data(); }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size(); }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size(); }
  std::byte& operator[](size_t i) { return data()[i]; }
  const std::byte& operator[](size_t i) const { return data()[i]; }

  friend bool operator==(const Bytes& a, const Bytes& b) { return std::ranges::equal(a, b); }

 private:
  HugeMemory memory_;
};

}  // namespace anneal
