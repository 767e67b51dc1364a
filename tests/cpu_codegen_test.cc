// Machine code of hand-written Programs: loops, lanes, index arithmetic and the code itself.
#include <ctime>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/checked.h"
#include "codegen/llvm/compile.h"
#include "ir/semantics.h"
#include "kernel_runner.h"
#include "program_builder.h"
#include "runtime/cpu/kernel_cache.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

constexpr uint16_t kLaneCounts[] = {1, 4, 16, 32};

// C[rows, 32] = A packed by columns [k, rows] times B packed [k, 32]: the heart of a matmul.
Program matmul_tile(int rows, uint16_t lanes) {
  ProgramBuilder b("matmul_tile");
  const uint64_t left = b.buffer(DType::F32), right = b.buffer(DType::F32);
  const uint64_t out = b.buffer(DType::F32, true);
  b.program.sizes = 1;
  const int columns = 32, vectors = columns / lanes;
  const ValueId zero = b.constant(Scalar::of(DType::F32, 0), lanes);
  const ValueId k = b.loop(b.index(0), b.size(0), b.index(1));
  std::vector<ValueId> sums, products, row;
  for (int i = 0; i < rows * vectors; ++i) sums.push_back(b.carry(zero));
  const ValueId below = b.compute(Op::Mul, {k, b.index(columns)});
  for (int j = 0; j < vectors; ++j) {
    row.push_back(b.load(right, b.compute(Op::Add, {below, b.index(j * lanes)}), lanes));
  }
  const ValueId column = b.compute(Op::Mul, {k, b.index(rows)});
  for (int i = 0; i < rows; ++i) {
    const ValueId place = b.compute(Op::Add, {column, b.index(i)});
    const ValueId factor = b.splat(b.load(left, place, 1), lanes);
    for (int j = 0; j < vectors; ++j) {
      const ValueId sum = sums[static_cast<size_t>(i * vectors + j)];
      products.push_back(b.compute(Op::MulAdd, {factor, row[static_cast<size_t>(j)], sum}));
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) b.next(sums[i], products[i]);
  b.end_loop();
  for (size_t i = 0; i < sums.size(); ++i) {
    b.store(out, b.index(static_cast<int64_t>(i) * lanes), sums[i]);
  }
  return b.program;
}

}  // namespace

// ---- cells and loops

TEST_CASE("cpu codegen: the cells that are asked for run, and no others") {
  ProgramBuilder b;
  const uint64_t out = b.buffer(DType::I64, true);
  const ValueId cell = b.cell();
  b.store(out, cell, b.cast(DType::I64, b.compute(Op::Add, {cell, b.index(100)})));
  const KernelFunction function = compile(b.program);
  std::vector<int64_t> values(8, -1);
  void* const buffers[] = {values.data()};
  function(buffers, nullptr, 2, 5, nullptr);
  CHECK(values == std::vector<int64_t>{-1, -1, 102, 103, 104, -1, -1, -1});
  function(buffers, nullptr, 6, 6, nullptr);
  function(buffers, nullptr, 6, 3, nullptr);
  CHECK(values[6] == -1);
}

TEST_CASE("cpu codegen: loops carry values, also those that change places") {
  // (a, b) = (b, a + b) from begin below end by step, with all three from sizes.
  ProgramBuilder b;
  const uint64_t out = b.buffer(DType::I64, true);
  b.program.sizes = 3;
  const ValueId zero = b.constant(Scalar::of_int(DType::I64, 0));
  const ValueId one = b.constant(Scalar::of_int(DType::I64, 1)), none = b.index(0);
  const ValueId i = b.loop(b.size(0), b.size(1), b.size(2));
  const ValueId first = b.carry(zero), second = b.carry(one), counters = b.carry(none);
  const ValueId sum = b.compute(Op::Add, {first, second});
  const ValueId all = b.compute(Op::Add, {counters, i});
  b.next(second, sum);
  b.next(first, second);
  b.next(counters, all);
  b.end_loop();
  b.store(out, b.index(0), first);
  b.store(out, b.index(1), second);
  b.store(out, b.index(2), b.cast(DType::I64, counters));
  const KernelFunction function = compile(b.program);
  auto result = [&](int64_t begin, int64_t end, int64_t step) {
    Memory memory(DType::I64, 3);
    run(function, b.program, {&memory}, 1, {begin, end, step});
    return numbers(memory);
  };
  CHECK(result(0, 10, 1) == std::vector<double>{55, 89, 45});
  CHECK(result(0, 10, 3) == std::vector<double>{3, 5, 18});
  CHECK(result(5, 6, 100) == std::vector<double>{1, 1, 5});
  CHECK(result(0, 0, 1) == std::vector<double>{0, 1, 0});
  CHECK(result(7, 3, 1) == std::vector<double>{0, 1, 0});
  CHECK(result(-2, 1, 1) == std::vector<double>{2, 3, -3});
}

TEST_CASE("cpu codegen: loops of constant length") {
  for (int64_t length : {0, 1, 5}) {
    ProgramBuilder b;
    const uint64_t out = b.buffer(DType::I32, true);
    const ValueId one = b.constant(Scalar::of_int(DType::I32, 1));
    b.loop(b.index(0), b.index(length), b.index(1));
    const ValueId count = b.carry(one);
    b.next(count, b.compute(Op::Add, {count, count}));
    b.end_loop();
    b.store(out, b.cell(), count);
    Memory memory(DType::I32, 2);
    run(compile(b.program), b.program, {&memory}, 2);
    CHECK(numbers(memory) == std::vector<double>(2, double(1 << length)));
  }
}

TEST_CASE("cpu codegen: nested loops, the inner one sometimes empty") {
  // The sum of i * 10 + j over j < i < n, by an inner loop that starts at the outer carry.
  ProgramBuilder b;
  const uint64_t out = b.buffer(DType::I64, true);
  b.program.sizes = 1;
  const ValueId zero = b.index(0), one = b.index(1), ten = b.index(10);
  const ValueId i = b.loop(zero, b.size(0), one);
  const ValueId total = b.carry(zero);
  const ValueId j = b.loop(zero, i, one);
  const ValueId inner = b.carry(total);
  const ValueId term = b.compute(Op::Add, {b.compute(Op::Mul, {i, ten}), j});
  b.next(inner, b.compute(Op::Add, {inner, term}));
  b.end_loop();
  b.next(total, inner);
  b.end_loop();
  b.store(out, zero, b.cast(DType::I64, total));
  const KernelFunction function = compile(b.program);
  for (int64_t n : {0, 1, 2, 3, 9}) {
    int64_t expected = 0;
    for (int64_t x = 0; x < n; ++x) {
      for (int64_t y = 0; y < x; ++y) expected += 10 * x + y;
    }
    Memory memory(DType::I64, 1);
    run(function, b.program, {&memory}, 1, {n});
    CHECK(memory.at(0).as_int() == expected);
  }
}

TEST_CASE("cpu codegen: an if holds until its end") {
  ProgramBuilder b;
  const uint64_t flags = b.buffer(DType::Bool), out = b.buffer(DType::F32, true);
  const ValueId cell = b.cell(), limit = b.index(3);
  b.open_if(b.load(flags, cell, 1));
  b.store(out, cell, b.constant(Scalar::of(DType::F32, 1)));
  b.open_if(b.compute(Op::Lt, DType::Bool, {cell, limit}));
  b.store(out, cell, b.constant(Scalar::of(DType::F32, 2)));
  b.end_if();
  b.end_if();
  Memory condition = numbers(DType::Bool, {1, 0, 1, 1, 0, 1}),
         result = numbers(DType::F32, {0, 0, 0, 0, 0, 0});
  run(compile(b.program), b.program, {&condition, &result}, 6);
  CHECK(numbers(result) == std::vector<double>{2, 0, 2, 1, 0, 1});
}

// ---- lanes

TEST_CASE("cpu codegen: lanes are combined as a fixed tree") {
  std::mt19937_64 random(6);
  for (DType dtype : {DType::F32, DType::F64, DType::I8, DType::U32, DType::I64, DType::Bool}) {
    for (Op op : {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or}) {
      const bool bitwise = op == Op::And || op == Op::Or;
      if ((bitwise && is_float(dtype)) || (!bitwise && is_bool(dtype))) continue;
      for (uint16_t lanes : kLaneCounts) {
        ProgramBuilder b;
        const uint64_t from = b.buffer(dtype), to = b.buffer(dtype, true);
        const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
        b.store(to, b.cell(), b.combine(op, b.load(from, place, lanes)));
        const size_t count = 128;
        Memory source(dtype, count), target(dtype, count / lanes);
        for (size_t i = 0; i < count; ++i) {
          const double spread = static_cast<double>(random() >> 11) * 0x1p-53 * 4 - 2;
          source.set(i, is_float(dtype) ? Scalar::of(dtype, spread)
                                        : Scalar::of_int(dtype, static_cast<int64_t>(random())));
        }
        run(compile(b.program), b.program, {&source, &target}, static_cast<int64_t>(target.size()));
        bool right = true;
        for (size_t cell = 0; cell < target.size(); ++cell) {
          std::vector<Scalar> rest;
          for (size_t lane = 0; lane < lanes; ++lane)
            rest.push_back(source.at(cell * lanes + lane));
          while (rest.size() > 1) {
            const size_t half = rest.size() / 2;
            for (size_t i = 0; i < half; ++i) {
              const Scalar both[] = {rest[i], rest[i + half]};
              rest[i] = evaluate(op, dtype, both);
            }
            rest.resize(half);
          }
          right &= target.at(cell) == rest[0];
        }
        CAPTURE(name(dtype));
        CAPTURE(name(op));
        CAPTURE(lanes);
        CHECK(right);
      }
    }
  }
}

TEST_CASE("cpu codegen: constants of every dtype") {
  for (DType dtype : storable_dtypes()) {
    for (uint16_t lanes : {uint16_t{1}, uint16_t{16}}) {
      const std::vector<Scalar> values{Scalar::of(dtype, 0),
                                       Scalar::of(dtype, 3),
                                       Scalar::of(dtype, 0.3),
                                       lowest(dtype),
                                       highest(dtype),
                                       Scalar::of(dtype, -0.0),
                                       Scalar::of(dtype, std::nan(""))};
      ProgramBuilder b;
      const uint64_t to = b.buffer(dtype, true);
      for (size_t i = 0; i < values.size(); ++i) {
        b.store(to, b.index(static_cast<int64_t>(i) * lanes), b.constant(values[i], lanes));
      }
      Memory target(dtype, values.size() * lanes);
      run(compile(b.program), b.program, {&target}, 1);
      for (size_t i = 0; i < target.size(); ++i) CHECK(target.at(i) == values[i / lanes]);
    }
  }
}

// ---- index arithmetic

TEST_CASE("cpu codegen: index arithmetic, with what is known to be positive and what is not") {
  const std::vector<Op> ops{Op::Add, Op::Mul, Op::FloorDiv, Op::Mod, Op::Max, Op::Min};
  const int64_t fixed[] = {1, 2, 3, 7, 8, 12, 1000, -1, -4, -5};
  for (uint16_t lanes : {uint16_t{1}, uint16_t{8}}) {
    for (int64_t constant : fixed) {
      ProgramBuilder b;
      const uint64_t from = b.buffer(DType::I64), to = b.buffer(DType::I64, true);
      b.program.sizes = 1;
      const ValueId cell = b.cell(), first = b.compute(Op::Mul, {cell, b.index(lanes)});
      const ValueId any = b.cast(DType::Index, b.load(from, first, lanes));
      const ValueId positive = b.ramp(first, b.index(1), lanes);
      const ValueId size = b.splat(b.size(0), lanes), known = b.index(constant, lanes);
      int64_t row = 0;
      auto keep = [&](ValueId value) {
        const ValueId place = b.compute(Op::Add, {first, b.index(64 * row++)});
        b.store(to, place, b.cast(DType::I64, value));
      };
      for (Op op : ops) {
        for (ValueId x : {any, positive}) {
          for (ValueId y : {known, size}) {
            // Divided again: what is known of the sign of the first result must be true.
            const ValueId result = b.compute(op, {x, y});
            keep(result);
            keep(b.compute(Op::FloorDiv, {result, b.index(3, lanes)}));
          }
        }
      }
      const int64_t wanted_rows = row;
      Memory source(DType::I64, 64), target(DType::I64, static_cast<size_t>(64 * row));
      for (size_t i = 0; i < 64; ++i) {
        source.set(i, Scalar::of_int(DType::I64, static_cast<int64_t>(i) * 5 - 160));
      }
      const int64_t bound = 6;
      run(compile(b.program), b.program, {&source, &target}, 64 / lanes, {bound});
      row = 0;
      for (Op op : ops) {
        for (bool is_any : {true, false}) {
          for (int64_t y : {constant, bound}) {
            for (size_t i = 0; i < 64; ++i) {
              const int64_t x = is_any ? source.at(i).as_int() : static_cast<int64_t>(i);
              const Scalar both[] = {Scalar::of_int(DType::Index, x),
                                     Scalar::of_int(DType::Index, y)};
              const int64_t result = evaluate(op, DType::Index, both).as_int();
              const int64_t wanted[] = {result, floor_div(result, 3)};
              for (int64_t k : {0, 1}) {
                const int64_t got = target.at(static_cast<size_t>(64 * (row + k)) + i).as_int();
                if (got == wanted[k]) continue;
                FAIL_CHECK(fmt::format("{} of {} and {} gave {} for {}", name(op), x, y, got, k));
              }
            }
            row += 2;
          }
        }
      }
      CHECK(row == wanted_rows);
    }
  }
}

TEST_CASE("cpu codegen: index lanes are divided exactly, however large") {
  std::mt19937_64 random(7);
  for (int64_t divisor : {3, 5, 7, 10, 28, 1000, 65537, 2147483647}) {
    const uint16_t lanes = 8;
    ProgramBuilder b;
    const uint64_t from = b.buffer(DType::I64);
    const uint64_t quotients = b.buffer(DType::I64, true), rests = b.buffer(DType::I64, true);
    const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
    const ValueId value = b.cast(DType::Index, b.load(from, place, lanes));
    const ValueId by = b.index(divisor, lanes);
    b.store(quotients, place, b.cast(DType::I64, b.compute(Op::FloorDiv, {value, by})));
    b.store(rests, place, b.cast(DType::I64, b.compute(Op::Mod, {value, by})));
    const size_t count = 4096;
    Memory source(DType::I64, count), quotient(DType::I64, count), rest(DType::I64, count);
    for (size_t i = 0; i < count; ++i) {
      const auto spread = static_cast<int64_t>(random()) >> (random() % 64);
      // Half of them next to a multiple of the divisor.
      const int64_t near = spread / divisor * divisor + static_cast<int64_t>(random() % 3) - 1;
      const bool safe = spread > INT64_MIN / 2 && spread < INT64_MAX / 2;
      source.set(i, Scalar::of_int(DType::I64, i % 2 && safe ? near : spread));
    }
    source.set(0, lowest(DType::I64));
    source.set(1, highest(DType::I64));
    run(compile(b.program), b.program, {&source, &quotient, &rest}, count / lanes);
    Comparison comparison;
    for (size_t i = 0; i < count; ++i) {
      const Scalar both[] = {Scalar::of_int(DType::I64, source.at(i).as_int()),
                             Scalar::of_int(DType::I64, divisor)};
      auto describe = [&] { return fmt::format("{} by {}", both[0].as_int(), divisor); };
      comparison.expect(quotient.at(i), evaluate(Op::FloorDiv, DType::I64, both), describe);
      comparison.expect(rest.at(i), evaluate(Op::Mod, DType::I64, both), describe);
    }
    comparison.finish(2 * count);
  }
}

TEST_CASE("cpu codegen: integers become places") {
  ProgramBuilder b;
  const uint64_t from = b.buffer(DType::U8), to = b.buffer(DType::I64, true);
  const ValueId value = b.load(from, b.cell(), 1);
  b.store(to, b.cell(), b.cast(DType::I64, b.compute(Op::AsIndex, DType::Index, {value})));
  Memory source = numbers(DType::U8, {0, 127, 128, 255}), target(DType::I64, 4);
  run(compile(b.program), b.program, {&source, &target}, 4);
  CHECK(numbers(target) == std::vector<double>{0, 127, 128, 255});
}

// ---- the code itself

TEST_CASE("cpu codegen: the tile of a matmul stays in registers") {
  const CpuTarget host = host_target();
  if (host.vector_bytes != 64) {
    MESSAGE("no registers of 64 bytes here");
    return;
  }
  for (uint16_t lanes : {uint16_t{16}, uint16_t{32}}) {
    for (int rows : {8, 12}) {
      const Program program = matmul_tile(rows, lanes);
      const Program* const programs[] = {&program};
      const std::string text = assembly(programs, host);
      size_t products = 0;
      for (size_t at = text.find("vfmadd"); at != std::string::npos;
           at = text.find("vfmadd", at + 1)) {
        ++products;
      }
      CHECK(products == static_cast<size_t>(2 * rows));  // of 16 lanes each, none twice
      CHECK(text.find("Spill") == std::string::npos);
      CHECK(text.find("(%rsp)") == std::string::npos);

      const size_t depth = 24, height = static_cast<size_t>(rows);
      Memory left(DType::F32, depth * height), right(DType::F32, depth * 32),
          out(DType::F32, height * 32);
      for (size_t i = 0; i < left.size(); ++i) left.set(i, Scalar::of(DType::F32, double(i % 5)));
      for (size_t i = 0; i < right.size(); ++i) right.set(i, Scalar::of(DType::F32, double(i % 7)));
      run(compile(program), program, {&left, &right, &out}, 1, {static_cast<int64_t>(depth)});
      for (size_t i = 0; i < height; ++i) {
        for (size_t j = 0; j < 32; ++j) {
          double sum = 0;
          for (size_t k = 0; k < depth; ++k) {
            sum += left.at(k * height + i).as_double() * right.at(k * 32 + j).as_double();
          }
          CHECK(out.at(i * 32 + j).as_double() == sum);
        }
      }
    }
  }
}

TEST_CASE("cpu codegen: code for AArch64") {
  const CpuTarget target{"aarch64-unknown-linux-gnu", "generic", "+neon", 16};
  std::vector<Program> programs{matmul_tile(8, 4)};
  for (DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::I8, DType::Bool}) {
    ProgramBuilder b(fmt::format("copy_{}", name(dtype)));
    const uint64_t from = b.buffer(dtype), to = b.buffer(DType::F32, true);
    const ValueId cell = b.cell(), places = b.ramp(cell, b.index(3), 4);
    const ValueId inside = b.compute(Op::Lt, DType::Bool, {places, b.index(100, 4)});
    const ValueId value = b.cast(DType::F32, b.load(from, cell, 4, inside));
    b.store(to, places, b.compute(Op::Erf, {b.compute(Op::Max, {value, value})}), inside);
    programs.push_back(b.program);
  }
  std::vector<const Program*> pointers;
  for (const Program& program : programs) {
    REQUIRE(verify(program) == "");
    pointers.push_back(&program);
  }
  const std::string text = assembly(pointers, target);
  CHECK(text.find("fmla\tv") != std::string::npos);
  CHECK(text.find("matmul_tile:") != std::string::npos);
  const CodeImage image = link_image(compile_to_object(pointers, target));
  CHECK(image.functions.size() == programs.size());
  REQUIRE(image.imports.size() == 1);
  CHECK(image.imports[0].name == "erf");
  CHECK(can_import(image));
}

TEST_CASE("cpu codegen: the host is described") {
  const CpuTarget host = host_target();
  CHECK(!host.triple.empty());
  CHECK(!host.cpu.empty());
  CHECK(host == host_target());
  CHECK((host.vector_bytes == 16 || host.vector_bytes == 32 || host.vector_bytes == 64));
  const Program program = matmul_tile(4, 16);
  const Program* const programs[] = {&program};
  CHECK(llvm_ir(programs, host).find("define void @matmul_tile(") != std::string::npos);
  CHECK(codegen_identity().find("llvm 19") != std::string::npos);
}

TEST_CASE("cpu codegen: small kernels compile in milliseconds") {
  KernelCache cache;
  cache.compile(matmul_tile(1, 16));  // the first one pays for what is made once
  const int count = 12;
  const std::clock_t start = std::clock();  // of this process: others may keep the machine busy
  for (int rows = 2; rows < 2 + count; ++rows) cache.compile(matmul_tile(rows, 16));
  const double milliseconds =
      static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / count * 1e3;
  CHECK(cache.statistics().compiled == count + 1);
  CHECK(milliseconds < 40);  // 3 as built for release
}
