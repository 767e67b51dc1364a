// Passes over programs for GPUs that say how an instruction is done: what each makes of programs as
// text, what verify() says of attributes that are wrong, and what the interpreter does by them.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/gpu/insert_barriers.h"
#include "kernel/gpu/lower_combines.h"
#include "kernel/gpu/pair_halves.h"
#include "kernel/gpu/place_locals.h"
#include "kernel/gpu/unsigned_division.h"
#include "kernel/program/program_content.h"
#include "lower_check.h"
#include "program_builder.h"
#include "program_checks.h"

using namespace anneal;

namespace {

constexpr std::string_view kCombined = R"(program combined
buffer b0 f32
buffer b1 f32 written
threads 8
  %0 = index 0
  %1 = index 1
  %2 = f32x8 load b0[%0]
  %3 = f32 combine add %2
  %4 = f32 combine max %2
  store f32 b1[%0] = %3
  store f32 b1[%1] = %4
)";

// Products of small whole numbers, which every dtype has.
struct MatrixProgram {
  Program program;
  std::vector<Value> values;
  Value wanted;
};

// Two subgroups multiply a matrix each, by rows, with one by columns, and add that up twice.
MatrixProgram matrix_program(const MatrixUnit& unit) {
  const int lefts = unit.rows * unit.depth, rights = unit.depth * unit.columns,
            sums = unit.rows * unit.columns;
  const auto lanes = static_cast<uint16_t>(2 * unit.lanes);
  testing::ProgramBuilder b("matrices");
  b.program.threads = lanes;
  b.program.matrix_unit = unit;
  const uint64_t from[] = {b.buffer(unit.operands), b.buffer(unit.operands)},
                 to = b.buffer(unit.sums, true);
  const uint64_t tiles[] = {b.local(unit.operands, 2 * lefts), b.local(unit.operands, 2 * rights)},
                 tile = b.local(unit.sums, 2 * sums);
  auto copy = [&](uint64_t source, uint64_t target, int elements) {
    for (int first = 0; first < 2 * elements; first += lanes) {
      const ValueId place = b.index(first);
      b.store(target, place, b.load(source, place, lanes));
    }
  };
  copy(from[0], tiles[0], lefts);
  copy(from[1], tiles[1], rights);
  const ValueId zero = b.index(0), one = b.index(1), two = b.index(2), depth = b.index(unit.depth);
  const ValueId lane = b.ramp(zero, one, lanes);
  const ValueId subgroup = b.compute(Op::FloorDiv, {lane, b.index(unit.lanes, lanes)});
  auto place = [&](int elements) {
    return b.compute(Op::Mul, {subgroup, b.index(elements, lanes)});
  };
  auto add = [&](Code code, DType dtype, std::array<ValueId, 4> operands, uint64_t bits = 0) {
    return b.add(
        {.code = code, .dtype = dtype, .lanes = lanes, .operands = operands, .bits = bits});
  };
  const ValueId none = add(Code::MatrixZero, unit.sums, {-1, -1, -1, -1});
  const ValueId left_place = place(lefts), right_place = place(rights), sum_place = place(sums);
  b.loop(zero, two, one);
  const ValueId sum = b.carry(none);
  const ValueId left = add(Code::MatrixLeft, unit.operands, {left_place, depth, one, -1}, tiles[0]);
  const ValueId right =
      add(Code::MatrixRight, unit.operands, {right_place, one, depth, -1}, tiles[1]);
  b.next(sum, add(Code::MatrixMultiplyAdd, unit.sums, {left, right, sum, -1}));
  b.program.code.back().lanes = lanes;
  b.program.code.back().dtype = unit.sums;
  b.end_loop();
  add(Code::MatrixStore, unit.sums, {sum_place, b.index(unit.columns), sum, -1}, tile);
  copy(tile, to, sums);

  auto number = [](int64_t i) { return static_cast<double>(i * 7 % 5 - 2); };
  MatrixProgram made{b.program, {}, {unit.sums, {2 * sums}, {}}};
  for (int elements : {lefts, rights}) {
    made.values.push_back({unit.operands, {2 * elements}, {}});
    for (int i = 0; i < 2 * elements; ++i)
      made.values.back().payload.push_back(Scalar::of(unit.operands, number(i)).bits());
  }
  made.values.push_back(
      {unit.sums, {2 * sums}, std::vector<uint64_t>(2 * static_cast<size_t>(sums))});
  for (int i = 0; i < 2 * sums; ++i) {
    const int matrix = i / sums, row = i / unit.columns % unit.rows, column = i % unit.columns;
    double total = 0;
    for (int k = 0; k < unit.depth; ++k)
      total += 2 * number(matrix * lefts + row * unit.depth + k) *
               number(matrix * rights + column * unit.depth + k);
    made.wanted.payload.push_back(Scalar::of(unit.sums, total).bits());
  }
  insert_barriers(made.program);
  return made;
}

}  // namespace

TEST_CASE(
    "gpu instructions: what is plain to divide is marked, and marks that are wrong are found") {
  const std::string_view text = R"(program divide
buffer b0 f32 written
sizes 1
threads 4
  %0 = cell
  %1 = index 3
  %2 = index -3
  %3 = size 0
  %4 = index floor_div %0 %1
  %5 = index mod %0 %2
  %6 = index add %0 %2
  %7 = index mod %6 %1
  %8 = index floor_div %6 %1
  %9 = index mod %7 %1
  %10 = index floor_div %0 %3
  %11 = i32 2
  %12 = i32 mod %11 %11
)";
  std::string marked(text);
  for (const char* plain : {"%4 = index floor_div", "%9 = index mod"})
    marked.insert(marked.find(plain) + std::string_view(plain).size(), " unsigned");
  CHECK(after(mark_unsigned_divisions, text) == marked);
  CHECK(to_text(parsed(marked)) == marked);
  CHECK(content(parsed(marked)) != content(parsed(text)));

  auto problem = [&](std::string_view line) {
    return verify(parsed(std::string(text) + line.data()));
  };
  CHECK(problem("%13 = index mod unsigned %0 %1") == "");
  CHECK(problem("%13 = index mod unsigned %0 %2") ==
        "instruction 13: an unsigned division by no positive constant");
  CHECK(problem("%13 = index mod unsigned %0 %3") ==
        "instruction 13: an unsigned division by no positive constant");
  CHECK(problem("%13 = index add unsigned %0 %1") ==
        "instruction 13: what is unsigned divides no indices");
  CHECK(problem("%13 = i32 mod unsigned %11 %11") ==
        "instruction 13: what is unsigned divides no indices");
  const std::vector<int64_t> sizes{5};
  const std::vector<Value> values{{DType::F32, {1}, {0}}};
  CHECK_NOTHROW(ran(parsed(marked), values, 2, sizes));
  CHECK_THROWS_WITH_AS(
      ran(parsed(std::string(text) + "%13 = index mod unsigned %6 %1\n"), values, 1, sizes),
      "internal error: an unsigned division of -3 by 3", InternalError);
}

TEST_CASE("gpu instructions: threads combine in subgroups, through memory, or both") {
  const auto lowered = [](int subgroup, std::string_view text = kCombined) {
    Program program = parsed(text);
    lower_combines(program, subgroup);
    CHECK(verify(program) == "");
    CHECK(content(parsed(to_text(program))) == content(program));
    return program;
  };
  auto has = [&](int subgroup, std::string_view wanted) {
    const std::string text = to_text(lowered(subgroup));
    CHECK_MESSAGE(text.find(wanted) != std::string::npos, text);
  };
  has(0, "local b2 f32[8]\nthreads 8\n");
  has(0, "combine add %2 subgroup 1 through b2\n  %4 = f32 combine max %2 subgroup 1 through b2");
  has(4, "local b2 f32[2]\nthreads 8\n");
  has(4, "combine add %2 subgroup 4 through b2\n  %4 = f32 combine max %2 subgroup 4 through b2");
  has(8, "b1 f32 written\nthreads 8\n");
  has(8, "combine add %2 subgroup 8\n  %4 = f32 combine max %2 subgroup 8\n");
  has(16, "subgroup 1 through b2");  // no subgroup is full
  CHECK(gpu_local_bytes(lowered(0)).of_group == 4 * 8);
  CHECK(gpu_local_bytes(lowered(4)).of_group == 16);
  CHECK(gpu_local_bytes(lowered(8)).of_group == 0);

  // What is no word goes through memory, and with it all else.
  std::string wide(kCombined);
  wide += "  %7 = i64x8 1\n  %8 = i64 combine add %7\n";
  const std::string text = to_text(lowered(4, wide));
  CHECK_MESSAGE(text.find("local b2 f32[8]\nlocal b3 i64[8]\n") != std::string::npos, text);
  CHECK_MESSAGE(text.find("combine add %7 subgroup 1 through b3") != std::string::npos, text);

  CHECK(to_text(lowered(4,
                        "program one\nthreads 1\n  %0 = f32 1.0\n  %1 = f32 combine add %0\n"
                        "  %2 = f32 add %1 %1\n")) ==
        "program one\nthreads 1\n  %0 = f32 1.0\n  %1 = f32 add %0 %0\n");
}

// 1 is lost beside 2^24 unless it meets another 1 first.
TEST_CASE("gpu instructions: threads combine in the order that an instruction says") {
  std::vector<Value> values{{DType::F32, {8}, {}}, {DType::F32, {2}, std::vector<uint64_t>(2)}};
  for (const double value : {0x1p24, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0})
    values[0].payload.push_back(Scalar::of(DType::F32, value).bits());
  const std::pair<int, double> sums[] = {
      {0, 0x1p24 + 2},  // (0 + 4) + (2 + 6), (1 + 5) + (3 + 7)
      {1, 0x1p24 + 2},  // the same
      {2, 0x1p24},      // ((0 + 1) + (2 + 3)) + (4 + 5) ...
      {8, 0x1p24 + 2},
  };
  for (const auto& [subgroup, sum] : sums) {
    CAPTURE(subgroup);
    Program program = parsed(kCombined);
    if (subgroup > 0) lower_combines(program, subgroup);
    const std::vector<Value> is = ran(program, values, 1);
    CHECK(is[1].at(0).as_double() == sum);
    CHECK(is[1].at(1).as_double() == 0x1p24);
  }
}

TEST_CASE("gpu instructions: combinations that threads cannot make are found") {
  auto problem = [](std::string_view line) {
    return verify(parsed(fmt::format(R"(program combine
buffer b0 f32
local b1 f32[2]
local b2 f32[8] private
threads 8
  %0 = f32x8 1.0
  %1 = i64x8 1
  %2 = f32 2.0
  {}
)",
                                     line)));
  };
  CHECK(problem("%3 = f32 combine add %0 subgroup 4 through b1") == "");
  CHECK(problem("%3 = f32 combine add %0 subgroup 8") == "");
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"%3 = f32 combine add %0 subgroup 3 through b1", "subgroups of 3 of 8 threads"},
      {"%3 = f32 combine add %0 subgroup 16 through b1", "subgroups of 16 of 8 threads"},
      {"%3 = f32 combine add %0 subgroup 2 through b1", "b1 is no memory for 4 f32"},
      {"%3 = f32 combine add %0 subgroup 1 through b2", "b2 is no memory for 8 f32"},
      {"%3 = f32 combine add %0 subgroup 4 through b0", "b0 is no memory for 2 f32"},
      {"%3 = f32 combine add %0 subgroup 4 through b9", "b9 is no memory for 2 f32"},
      {"%3 = f32 combine add %0 subgroup 8 through b1", "memory that is not needed"},
      {"%3 = f32 combine add %0 through b1", "combines lanes through memory"},
      {"%3 = i64 combine add %1 subgroup 4 through b1", "exchanges more than a word"},
      {"%3 = f32 combine add %2 subgroup 1", "combines what threads do not have"},
  };
  for (const auto& [line, wanted] : cases) {
    CAPTURE(line);
    CHECK(problem(line) == fmt::format("instruction 3: {}", wanted));
  }
}

TEST_CASE("gpu instructions: matrices have the shape and the dtypes of the program's unit") {
  for (const MatrixUnit& unit : {MatrixUnit{16, 16, 16, DType::F16, DType::F32, 32},
                                 MatrixUnit{8, 8, 8, DType::F32, DType::F32, 32},
                                 MatrixUnit{8, 8, 8, DType::F16, DType::F16, 32},
                                 MatrixUnit{16, 8, 16, DType::F16, DType::F32, 32}}) {
    const MatrixProgram made = matrix_program(unit);
    CAPTURE(to_text(made.program));
    REQUIRE(verify(made.program) == "");
    CHECK(to_text(parsed(to_text(made.program))) == to_text(made.program));
    CHECK(content(parsed(to_text(made.program))) == content(made.program));
    CHECK(ran(made.program, made.values, 1)[2].payload == made.wanted.payload);
    for (int MatrixUnit::* side :
         {&MatrixUnit::rows, &MatrixUnit::columns, &MatrixUnit::depth, &MatrixUnit::lanes}) {
      Program other = made.program;
      (*other.matrix_unit).*side += 1;
      CHECK(content(other) != content(made.program));
    }
  }
  Program none = matrix_program({8, 8, 8, DType::F32, DType::F32, 32}).program;
  Program emulated = none;
  emulated.emulates_matrices = true;
  CHECK(to_text(emulated).find("lanes 32 emulated\n") != std::string::npos);
  CHECK(to_text(parsed(to_text(emulated))) == to_text(emulated));
  CHECK(content(emulated) != content(none));
  emulated.matrix_unit = none.matrix_unit = std::nullopt;
  CHECK(verify(emulated) == "no unit is emulated");
  CHECK(verify(none).find(": a matrix of no unit") != std::string::npos);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"0x8x8 f16 f32 lanes 32", "a matrix with a side of 0"},
      {"8x8x999 f16 f32 lanes 32", "a matrix with a side of 999"},
      {"8x8x8 f16 f32 lanes 0", "a matrix of 0 lanes"},
      {"8x8x8 f16 i32 lanes 32", "a matrix that is not of floats"},
  };
  for (const auto& [unit, wanted] : cases)
    CHECK(verify(parsed(fmt::format("program p\nmatrix_unit {}\n", unit))) == wanted);
  CHECK(verify(parsed("program p\nmatrix_unit 8x8x8 f16 f32 lanes 32\n%0 = f32x48 matrix\n")) ==
        "instruction 0: lanes that make no whole matrices");
  CHECK(verify(parsed("program p\nmatrix_unit 8x8x8 f16 f32 lanes 32\n%0 = f16x32 matrix\n")) ==
        "instruction 0: the result is f16x32, wanted f32x32");
}

TEST_CASE("gpu instructions: two roundings to f16 are one, for matrix units") {
  const auto text = [](std::string_view body, std::string_view unit) {
    return fmt::format(R"(program halves
buffer b0 f32
buffer b1 f32 written
local b2 f16[8]
threads 8
{1}  %0 = index 0
  %1 = f32x8 load b0[%0]
  %2 = f32x8 add %1 %1
{0})",
                       body, unit);
  };
  const std::string_view casts = R"(  %3 = f16x8 cast %1
  %4 = f16x8 cast %2
  %5 = f16x8 cast %1
  %6 = f32x8 cast %4
  store f16x8 b2[%0] = %3
  store f32x8 b1[%0] = %6
)";
  const std::string unit = "matrix_unit 8x8x8 f16 f32 lanes 8";
  const std::string with_matrices = text(casts, unit + "\n");
  for (const std::string& other : {text(casts, ""), text(casts, unit + " emulated\n")})
    CHECK(after(pair_halves, other) == other);
  const std::string paired = text(R"(  %3 = f32x8 pack %1 %2
  %4 = f16x8 cast wide 2 %3
  %5 = f16x8 element 0 %4
  %6 = f16x8 element 1 %4
  %7 = f16x8 cast %1
  %8 = f32x8 cast %6
  store f16x8 b2[%0] = %5
  store f32x8 b1[%0] = %8
)",
                                  unit + "\n");
  CHECK(after(pair_halves, with_matrices) == paired);
  CHECK(to_text(parsed(paired)) == paired);
  std::mt19937_64 random(7);
  const std::vector<Value> values{random_value(DType::F32, 8, random),
                                  random_value(DType::F32, 8, random)};
  CHECK(ran(parsed(paired), values, 1)[1].payload ==
        ran(parsed(with_matrices), values, 1)[1].payload);

  const auto problem = [&](std::string_view lines) { return verify(parsed(text(lines, ""))); };
  const std::string_view none = "instruction 4: a cast of what is no pairs of f32 to f16";
  CHECK(problem("  %3 = f32x8 pack %1 %2\n  %4 = bf16x8 cast wide 2 %3\n") == none);
  CHECK(problem("  %3 = f32x8 pack %1 %2 %1 %2\n  %4 = f16x8 cast wide 4 %3\n") == none);
  CHECK(problem("  %3 = f32x8 pack %1 %2\n  %4 = f16x8 cast wide 2 %1\n") == none);
  CHECK(problem("  %3 = f32x8 pack %1 %2\n  %4 = f16x8 cast %3\n") ==
        "instruction 4: operand 0 is wide");
  CHECK(problem("  %3 = f32x8 add wide 2 %1 %2\n") == "instruction 3: a width of 2");
}
