// Functions are imported by name from a fixed list: code from a cache gets at nothing else.
#include "runtime/cpu/code_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/call_site.h"
#include "base/os/executable_memory.h"

namespace anneal {
namespace {

struct LibraryFunction {
  std::string_view name;
  uintptr_t address;
};

template <typename Function>
uintptr_t address_of(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}
// Of one number or of two; of the overloads, the one for T.
template <typename T>
uintptr_t address_of(T (*function)(T)) {
  return reinterpret_cast<uintptr_t>(function);
}
template <typename T>
uintptr_t address_of(T (*function)(T, T)) {
  return reinterpret_cast<uintptr_t>(function);
}

// The function of f64 that the table names, and its twin of f32, which LLVM may call instead.
#define OF_BOTH(name) \
  {#name, address_of<double>(::name)}, { #name "f", address_of<float>(::name##f) }
#define Libm(name) OF_BOTH(name),
#define NoLibm
#define OP(number, Name, text, sources, tail, arg, shape, type, accepts, commutative, cost, code, \
           libm, meaning)                                                                         \
  libm

// What code may call: the functions of the op table, and arithmetic that LLVM leaves to the
// library, on some targets or on all.
const LibraryFunction kLibrary[] = {
#include "ir/ops.def"
    OF_BOTH(floor),
    OF_BOTH(ceil),
    OF_BOTH(trunc),
    OF_BOTH(nearbyint),
    OF_BOTH(sqrt),
    {"fmod", address_of(static_cast<double (*)(double, double)>(::fmod))},
    {"fma", address_of(static_cast<double (*)(double, double, double)>(::fma))},
    {"fmaf", address_of(static_cast<float (*)(float, float, float)>(::fmaf))},
#ifdef __linux__
    {"sincos", address_of(static_cast<void (*)(double, double*, double*)>(::sincos))},
#endif
    {"memcpy", address_of(static_cast<void* (*)(void*, const void*, size_t)>(::memcpy))},
    {"memset", address_of(static_cast<void* (*)(void*, int, size_t)>(::memset))},
};
#undef OP
#undef NoLibm
#undef Libm
#undef OF_BOTH

uintptr_t find_library_function(std::string_view name) {
  for (const LibraryFunction& function : kLibrary) {
    if (function.name == name) return function.address;
  }
  return 0;
}

size_t round_up(size_t bytes) { return (bytes + kImageAlignment - 1) & ~(kImageAlignment - 1); }

}  // namespace

bool can_import(const CodeImage& image) {
  return std::all_of(image.imports.begin(), image.imports.end(), [](const ImageSymbol& symbol) {
    return find_library_function(symbol.name) != 0;
  });
}

CodeMemory::CodeMemory(std::span<const CodeImage* const> images) {
  for (const CodeImage* image : images) {
    offsets_.push_back(bytes_);
    bytes_ += round_up(image->bytes.size());
  }
  if (bytes_ == 0) return;
  memory_ = map_writable(bytes_);
  if (!memory_) fail(fmt::format("out of memory: {} bytes wanted for code", bytes_));
  for (size_t i = 0; i < images.size(); ++i) {
    std::byte* place = memory_ + offsets_[i];
    std::memcpy(place, images[i]->bytes.data(), images[i]->bytes.size());
    for (const ImageSymbol& symbol : images[i]->imports) {
      const uintptr_t address = find_library_function(symbol.name);
      if (address == 0) {
        unmap(memory_, bytes_);
        throw InternalError("code calls " + symbol.name + ", which it may not");
      }
      std::memcpy(place + symbol.offset, &address, sizeof address);
    }
  }
  if (make_executable(memory_, bytes_)) return;
  unmap(memory_, bytes_);
  fail("the system does not let code be run that this process made",
       "a security policy may forbid it");
}

CodeMemory::~CodeMemory() {
  if (memory_) unmap(memory_, bytes_);
}

}  // namespace anneal
