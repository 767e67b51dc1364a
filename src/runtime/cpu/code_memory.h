// Memory that code runs from: filled once, then executable and no longer writable.
// Must not know what the code does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codegen/llvm/link.h"

namespace anneal {

// Whether this process knows every function the image calls.
bool can_import(const CodeImage& image);

// Images in one stretch of memory, unmapped with it.
class CodeMemory {
 public:
  // Every image must be importable.
  explicit CodeMemory(std::span<const CodeImage* const> images);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  // Where image i is.
  std::byte* address(size_t i) const { return memory_ + offsets_[i]; }

 private:
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<size_t> offsets_;
};

}  // namespace anneal
