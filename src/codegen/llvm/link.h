// Object code to a flat image that runs wherever it is put: what a cache keeps, and what is loaded
// without LLVM. LLVM's own headers stay out of here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace anneal {

struct ImageSymbol {
  std::string name;
  uint64_t offset = 0;
  friend bool operator==(const ImageSymbol&, const ImageSymbol&) = default;
};

// Code and constants, to be put at an address of kImageAlignment, in memory that is readable and
// executable.
struct CodeImage {
  std::vector<std::byte> bytes;
  std::vector<ImageSymbol> functions;
  // Eight bytes each that must hold the address of a function of C's library before code runs.
  std::vector<ImageSymbol> imports;
};

inline constexpr size_t kImageAlignment = 4096;

CodeImage link_image(std::span<const std::byte> object);

}  // namespace anneal
