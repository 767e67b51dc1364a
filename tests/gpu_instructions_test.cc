// Passes over programs for GPUs that say how an instruction is done: what each makes of programs as
// text, what verify() says of attributes that are wrong, and what the interpreter does by them.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/gpu/unsigned_division.h"
#include "kernel/program/program_content.h"
#include "program_checks.h"

using namespace anneal;

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
