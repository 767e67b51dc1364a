// Memory for the elements of a tensor: aligned for every vector width, in huge pages when large,
// and not cleared, for whoever asks for it writes all of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>

namespace anneal {

inline constexpr size_t kBytesAlignment = 64;

std::byte* allocate_bytes(size_t bytes);  // throws std::bad_alloc
void free_bytes(std::byte* memory);

class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size) : memory_(size ? allocate_bytes(size) : nullptr), size_(size) {}
  explicit Bytes(std::span<const std::byte> contents) : Bytes(contents.size()) {
    if (size_ != 0) std::memcpy(data(), contents.data(), size_);
  }
  Bytes(std::initializer_list<std::byte> contents)
      : Bytes(std::span<const std::byte>(contents.begin(), contents.size())) {}
  Bytes(const Bytes& other) : Bytes(std::span<const std::byte>(other)) {}
  Bytes& operator=(const Bytes& other) { return *this = Bytes(other); }
  Bytes(Bytes&& other) noexcept = default;
  Bytes& operator=(Bytes&& other) noexcept = default;

  size_t size() const { return memory_ ? size_ : 0; }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size(); }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size(); }
  std::byte& operator[](size_t i) { return data()[i]; }
  const std::byte& operator[](size_t i) const { return data()[i]; }

  friend bool operator==(const Bytes& a, const Bytes& b) { return std::ranges::equal(a, b); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { free_bytes(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t size_ = 0;
};

}  // namespace anneal
