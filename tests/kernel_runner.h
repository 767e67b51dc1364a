// Runs Programs on arrays of Scalars: what the tests of machine code share.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "codegen/llvm/compile.h"
#include "ir/float_formats.h"
#include "ir/scalar.h"
#include "runtime/cpu/kernel_cache.h"

namespace anneal::testing {

// Memory of a buffer, in the dtype's own format.
struct Memory {
  DType dtype = DType::F32;
  std::vector<std::byte> bytes;

  Memory(DType of, size_t elements) : dtype(of), bytes(elements * byte_size(of)) {}
  Memory(DType of, std::span<const Scalar> values) : Memory(of, values.size()) {
    for (size_t i = 0; i < values.size(); ++i) set(i, values[i]);
  }

  size_t size() const { return bytes.size() / byte_size(dtype); }
  void set(size_t i, Scalar value) {
    const uint64_t code =
        is_float(dtype) ? encode(dtype, std::bit_cast<double>(value.bits())) : value.bits();
    std::memcpy(bytes.data() + i * byte_size(dtype), &code, byte_size(dtype));
  }
  uint64_t code(size_t i) const {
    uint64_t code = 0;
    std::memcpy(&code, bytes.data() + i * byte_size(dtype), byte_size(dtype));
    return code;
  }
  Scalar at(size_t i) const {
    if (is_float(dtype)) return Scalar::of(dtype, decode(dtype, code(i)));
    return Scalar::of_int(dtype, static_cast<int64_t>(code(i)));
  }
};

// Cells 0 up to `cells`, in one call.
inline void run_on(KernelFunction function, const Program& program, std::vector<void*> pointers,
                   int64_t cells, std::vector<int64_t> sizes) {
  REQUIRE(pointers.size() == program.buffers.size());
  std::vector<std::byte> scratch(static_cast<size_t>(local_bytes(program) + kLocalAlignment));
  void* local = scratch.data();
  size_t space = scratch.size();
  local = std::align(static_cast<size_t>(kLocalAlignment),
                     static_cast<size_t>(local_bytes(program)), local, space);
  function(pointers.data(), sizes.data(), 0, cells, local);
}

inline void run(KernelFunction function, const Program& program,
                std::initializer_list<Memory*> buffers, int64_t cells,
                std::vector<int64_t> sizes = {}) {
  std::vector<void*> pointers;
  for (Memory* memory : buffers) pointers.push_back(memory->bytes.data());
  run_on(function, program, std::move(pointers), cells, std::move(sizes));
}

// Many comparisons: counts what is wrong and shows the first.
class Comparison {
 public:
  template <typename Describe>
  void expect(Scalar got, Scalar want, const Describe& describe) {
    ++cases_;
    if (got == want || wrong_++ != 0) return;
    first_ = describe() + " gave " + to_text(got) + ", wanted " + to_text(want);
  }
  void finish(size_t least_cases) const {
    INFO(first_);
    CHECK(wrong_ == 0);
    CHECK(cases_ >= least_cases);
  }

 private:
  size_t cases_ = 0, wrong_ = 0;
  std::string first_;
};

inline KernelFunction compile(const Program& program) {
  INFO(to_text(program));
  REQUIRE(verify(program) == "");
  static KernelCache cache;
  return cache.compile(program);
}

inline Memory numbers(DType dtype, std::vector<double> values) {
  Memory memory(dtype, values.size());
  for (size_t i = 0; i < values.size(); ++i) memory.set(i, Scalar::of(dtype, values[i]));
  return memory;
}

inline std::vector<double> numbers(const Memory& memory) {
  std::vector<double> values;
  for (size_t i = 0; i < memory.size(); ++i) values.push_back(memory.at(i).as_double());
  return values;
}

inline std::vector<DType> storable_dtypes() {
  std::vector<DType> dtypes;
  for (DType dtype : kAllDTypes) {
    if (!is_index(dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

}  // namespace anneal::testing
