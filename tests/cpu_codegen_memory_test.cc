// Machine code that reads and writes memory: every dtype, conditions, places in lanes. The pages
// around what exists may not be touched.
#include <algorithm>
#include <numeric>
#include <random>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_runner.h"
#include "program_builder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

constexpr uint16_t kLaneCounts[] = {1, 4, 16, 32};

// Values 1, 2, 3, .. that every dtype holds; true and false in turn.
Scalar counted(DType dtype, size_t i) {
  return is_bool(dtype) ? Scalar::of_int(dtype, i % 2) : Scalar::of(dtype, double(i % 7 + 1));
}

// Memory that ends where the next page may not be touched, and begins where the one before may not.
class GuardedPage {
 public:
  GuardedPage() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(memory_ + page_, page_, PROT_READ | PROT_WRITE) == 0);
  }
  ~GuardedPage() { munmap(memory_, 3 * page_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  std::byte* begin() const { return memory_ + page_; }
  std::byte* end() const { return memory_ + 2 * page_; }

 private:
  size_t page_;
  std::byte* memory_;
};

}  // namespace

TEST_CASE("cpu codegen: every dtype is loaded and stored as it is") {
  for (DType dtype : storable_dtypes()) {
    for (uint16_t lanes : kLaneCounts) {
      ProgramBuilder b;
      const uint64_t from = b.buffer(dtype), to = b.buffer(dtype, true);
      const uint64_t spare = b.local(DType::U8, 3), scratch = b.local(dtype, 70);
      CHECK(spare + 1 == scratch);
      const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
      // Through local memory at an odd place, so that nothing is aligned by chance.
      b.store(scratch, b.index(3), b.load(from, place, lanes));
      b.store(to, place, b.load(scratch, b.index(3), lanes));
      Memory source(dtype, 64), target(dtype, 64);
      for (size_t i = 0; i < 64; ++i) source.set(i, counted(dtype, i));
      run(compile(b.program), b.program, {&source, &target}, 64 / lanes);
      CHECK(source.bytes == target.bytes);
    }
  }
}

TEST_CASE("cpu codegen: local buffers lie apart, each aligned") {
  ProgramBuilder b;
  b.local(DType::U8, 3);
  b.local(DType::F64, 9);
  b.local(DType::F32, 16);
  CHECK(local_offset(b.program, 0) == 0);
  CHECK(local_offset(b.program, 1) == 64);
  CHECK(local_offset(b.program, 2) == 192);
  CHECK(local_bytes(b.program) == 256);
  CHECK(local_bytes(Program{}) == 0);
}

TEST_CASE("cpu codegen: a buffer that is read and written keeps its order") {
  // x[i] += x[i - 1] from 1 on, within one cell.
  ProgramBuilder b;
  const uint64_t memory = b.buffer(DType::F32, true);
  b.program.sizes = 1;
  const ValueId one = b.index(1);
  const ValueId i = b.loop(one, b.size(0), one);
  const ValueId before = b.load(memory, b.compute(Op::Add, {i, b.index(-1)}), 1);
  b.store(memory, i, b.compute(Op::Add, {b.load(memory, i, 1), before}));
  b.end_loop();
  Memory values = numbers(DType::F32, {1, 2, 3, 4, 5});
  run(compile(b.program), b.program, {&values}, 1, {5});
  CHECK(numbers(values) == std::vector<double>{1, 3, 6, 10, 15});
}

TEST_CASE("cpu codegen: what a condition excludes is not touched") {
  const GuardedPage page;
  for (DType dtype : storable_dtypes()) {
    for (uint16_t lanes : kLaneCounts) {
      for (bool by_lane : {false, true}) {
        CAPTURE(name(dtype));
        CAPTURE(lanes);
        CAPTURE(by_lane);
        // Copies elements 0 <= cell * lanes + lane < n of a buffer, adding nothing but order.
        ProgramBuilder b;
        const uint64_t from = b.buffer(dtype), to = b.buffer(dtype, true);
        b.program.sizes = 2;
        const ValueId place =
            b.compute(Op::Add, {b.compute(Op::Mul, {b.cell(), b.index(lanes)}), b.size(1)});
        const ValueId places = b.ramp(place, b.index(1), lanes);
        const ValueId below = b.compute(Op::Lt, DType::Bool, {places, b.splat(b.size(0), lanes)});
        const ValueId above = b.compute(Op::Le, DType::Bool, {b.index(0, lanes), places});
        const ValueId inside = b.compute(Op::And, {below, above});
        const ValueId at = by_lane ? places : place;
        const ValueId value = b.load(from, at, lanes, inside);
        b.store(to, at, value, inside);
        const KernelFunction function = compile(b.program);

        const int64_t n = 19;
        const size_t bytes = static_cast<size_t>(n) * byte_size(dtype);
        Memory source(dtype, static_cast<size_t>(n));
        for (size_t i = 0; i < source.size(); ++i) source.set(i, counted(dtype, i));
        // From before the beginning to beyond the end, at both ends of what exists.
        for (std::byte* memory : {page.end() - bytes, page.begin()}) {
          std::copy(source.bytes.begin(), source.bytes.end(), memory);
          Memory target(dtype, static_cast<size_t>(n));
          const int64_t start = -lanes;
          const int64_t sizes[] = {n, start};
          const int64_t cells = (n + 2 * lanes) / lanes + 1;
          void* const reading[] = {memory, target.bytes.data()};
          function(reading, sizes, 0, cells, nullptr);
          CHECK(target.bytes == source.bytes);
          std::fill(memory, memory + bytes, std::byte{0});
          void* const writing[] = {source.bytes.data(), memory};
          function(writing, sizes, 0, cells, nullptr);
          CHECK(std::equal(source.bytes.begin(), source.bytes.end(), memory));
        }
      }
    }
  }
}

TEST_CASE("cpu codegen: lanes that are not read are zero") {
  for (DType dtype : storable_dtypes()) {
    for (uint16_t lanes : kLaneCounts) {
      ProgramBuilder b;
      const uint64_t from = b.buffer(dtype), flags = b.buffer(DType::Bool),
                     to = b.buffer(dtype, true);
      const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
      const ValueId condition = b.load(flags, place, lanes);
      b.store(to, place, b.load(from, place, lanes, condition));
      Memory source(dtype, 64), mask(DType::Bool, 64), target(dtype, 64), expected(dtype, 64);
      std::mt19937 random(4);
      for (size_t i = 0; i < 64; ++i) {
        const bool kept = random() % 2;
        source.set(i, counted(dtype, i));
        mask.set(i, Scalar::of_int(DType::Bool, kept));
        target.set(i, counted(dtype, i + 1));
        expected.set(i, kept ? source.at(i) : Scalar::of_int(dtype, 0));
      }
      run(compile(b.program), b.program, {&source, &mask, &target}, 64 / lanes);
      CHECK(target.bytes == expected.bytes);
    }
  }
}

TEST_CASE("cpu codegen: lanes are gathered from and scattered to any place") {
  for (DType dtype : storable_dtypes()) {
    for (uint16_t lanes : kLaneCounts) {
      ProgramBuilder b;
      const uint64_t from = b.buffer(dtype), order = b.buffer(DType::I32),
                     to = b.buffer(dtype, true);
      const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
      const ValueId places = b.cast(DType::Index, b.load(order, place, lanes));
      // A gather into order and a scatter out of it again, one element further.
      const ValueId further = b.compute(Op::Add, {places, b.index(1, lanes)});
      b.store(to, further, b.load(from, places, lanes));
      std::vector<int32_t> permutation(64);
      std::iota(permutation.begin(), permutation.end(), 0);
      std::shuffle(permutation.begin(), permutation.end(), std::mt19937(5));
      Memory source(dtype, 64), target(dtype, 65), expected(dtype, 65),
          places_memory(DType::I32, 64);
      for (size_t i = 0; i < 64; ++i) {
        source.set(i, counted(dtype, i));
        expected.set(i + 1, counted(dtype, i));
        places_memory.set(i, Scalar::of_int(DType::I32, permutation[i]));
      }
      run(compile(b.program), b.program, {&source, &places_memory, &target}, 64 / lanes);
      CHECK(target.bytes == expected.bytes);
    }
  }
}

TEST_CASE("cpu codegen: every second element, and nothing beyond the last of them") {
  const GuardedPage page;
  for (DType dtype : storable_dtypes()) {
    for (uint16_t lanes : kLaneCounts) {
      for (const bool masked : {false, true}) {
        CAPTURE(name(dtype));
        CAPTURE(lanes);
        CAPTURE(masked);
        ProgramBuilder b;
        const uint64_t from = b.buffer(dtype), flags = b.buffer(DType::Bool),
                       to = b.buffer(dtype, true);
        const ValueId places = b.ramp(b.index(0), b.index(2), lanes);
        const ValueId condition = masked ? b.load(flags, b.index(0), lanes) : kNoValue;
        b.store(to, b.index(0), b.load(from, places, lanes, condition));
        const KernelFunction function = compile(b.program);

        // Of the mask's lanes some are off, the last one too: the memory ends before it.
        Memory source(dtype, size_t{2} * lanes), mask(DType::Bool, lanes), expected(dtype, lanes),
            target(dtype, lanes);
        for (size_t i = 0; i < source.size(); ++i) source.set(i, counted(dtype, i));
        for (size_t i = 0; i < lanes; ++i) {
          const bool kept = !masked || (i % 3 != 1 && i + 1 < lanes);
          mask.set(i, Scalar::of_int(DType::Bool, kept));
          expected.set(i, kept ? source.at(2 * i) : Scalar::of_int(dtype, 0));
        }
        const size_t elements = masked ? size_t{2} * lanes - 2 : size_t{2} * lanes - 1;
        const size_t bytes = elements * byte_size(dtype);
        std::byte* memory = page.end() - bytes;
        std::copy_n(source.bytes.begin(), bytes, memory);
        void* const buffers[] = {memory, mask.bytes.data(), target.bytes.data()};
        function(buffers, nullptr, 0, 1, nullptr);
        CHECK(target.bytes == expected.bytes);
      }
    }
  }
}

TEST_CASE("cpu codegen: of equal places of a scatter the last lane wins") {
  ProgramBuilder b;
  const uint64_t from = b.buffer(DType::F32), to = b.buffer(DType::F32, true);
  const ValueId half =
      b.compute(Op::FloorDiv, {b.ramp(b.index(0), b.index(1), 16), b.index(2, 16)});
  b.store(to, half, b.load(from, b.index(0), 16));
  Memory source(DType::F32, 16), target(DType::F32, 8);
  for (size_t i = 0; i < 16; ++i) source.set(i, Scalar::of(DType::F32, double(i)));
  run(compile(b.program), b.program, {&source, &target}, 1);
  CHECK(numbers(target) == std::vector<double>{1, 3, 5, 7, 9, 11, 13, 15});
}
