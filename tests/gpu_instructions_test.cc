// Passes over programs for GPUs that say how an instruction is done: what each makes of programs as
// text, what verify() says of attributes that are wrong, and what the interpreter does by them.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/gpu/lower_combines.h"
#include "kernel/gpu/place_locals.h"
#include "kernel/gpu/unsigned_division.h"
#include "kernel/program/program_content.h"
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
  CHECK(gpu_local_bytes(lowered(0), false).of_group == 4 * 8);
  CHECK(gpu_local_bytes(lowered(4), false).of_group == 16);
  CHECK(gpu_local_bytes(lowered(8), false).of_group == 0);

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
