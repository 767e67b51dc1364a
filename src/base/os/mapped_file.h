// The bytes of a file, readable as memory. Must not know what is in them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>

namespace anneal {

class MappedFile {
 public:
  // Why it cannot be read, for a message: "no such file", "is a directory".
  static std::variant<MappedFile, std::string> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_;
  size_t size_;
};

}  // namespace anneal
