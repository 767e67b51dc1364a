// Programs as text: what is written is read back, what is wrong is told with its place, and
// programs in files (tests/programs) run alike in the interpreter and as machine code.
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/program/program_content.h"
#include "kernel_runner.h"
#include "program_file.h"
#include "program_interpreter.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

std::string error_of(std::string_view text, const ProgramLimits& limits = {}) {
  const auto read = parse_program(text, limits);
  const auto* error = std::get_if<TextError>(&read);
  return error ? fmt::format("{}:{}: {}", error->at.line, error->at.column, error->message) : "";
}

}  // namespace

TEST_CASE("program text: programs in files run alike in the interpreter and as machine code") {
  for (const std::filesystem::path& path : program_files("tests/programs")) {
    CAPTURE(path.filename().string());
    const ProgramFile file = read_program_file(path);
    std::vector<Value> wanted = file.values;
    std::vector<Memory> memories;
    for (const Value& value : wanted) {
      memories.emplace_back(value.dtype, value.payload.size());
      for (int64_t at = 0; at < value.size(); ++at)
        memories.back().set(static_cast<size_t>(at), value.at(at));
    }
    std::vector<Value*> values;
    for (Value& value : wanted) values.push_back(&value);
    run_program(file.program, values, file.sizes, file.cells);
    std::vector<void*> pointers;
    for (Memory& memory : memories) pointers.push_back(memory.bytes.data());
    run_on(compile(file.program), file.program, pointers, file.cells, file.sizes);
    Comparison comparison;
    for (size_t i = 0; i < memories.size(); ++i)
      for (size_t at = 0; at < memories[i].size(); ++at)
        comparison.expect(memories[i].at(at), wanted[i].at(static_cast<int64_t>(at)),
                          [&] { return fmt::format("b{}[{}]", i, at); });
    comparison.finish(1);
  }
}

TEST_CASE("program text: mistakes are told with their place") {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "1:1: expected program NAME"},
      {"buffer b0 f32", "1:7: expected program NAME, once, first"},
      {"program p\nprogram q", "2:8: expected program NAME, once, first"},
      {"program 1", "1:9: expected a name"},
      {"program p\nbuffer b1 f32", "2:10: expected buffer b0"},
      {"program p\nbuffer b0 f33", "2:14: there is no dtype 'f33'"},
      {"program p\nlocal b0 f32[4]\nbuffer b1 f32", "3:7: buffers come before locals"},
      {"program p\n%0 = cell\nlocal b0 f32[4]", "3:6: buffers come before instructions"},
      {"program p\nlocal b0 f32[-4]",
       "2:16: expected a number from 0 to 9223372036854775807, found -4"},
      {"program p\n%1 = cell", "2:3: expected %0, the number of this instruction"},
      {"program p\n%0 = f32x1 2.0", "2:11: there is no type 'f32x1'"},
      {"program p\n%0 = f32x99999 2.0", "2:15: there is no type 'f32x99999'"},
      {"program p\n%0 = f32 fly %1", "2:13: there is no op or value 'fly'"},
      {"program p\n%0 = u8 256", "2:12: there is no op or value '256'"},
      {"program p\n%0 = f32 load b0[%1]", "2:17: there is no buffer b0"},
      {"program p\nmatrix_unit 16x16 f16", "2:19: expected 'x', found 'f'"},
      {"program p\nmatrix_unit 16x2000x16 f16 f32 lanes 32",
       "2:20: expected a number from 0 to 1024, found 2000"},
      {"program p\nend", "2:4: the end of nothing"},
      {"program p\n%0 = cell\nif %0", "3:6: expected end before the end of the text"},
      {"program p\n%0 = cell %1", "2:11: expected the end of the line, found '%'"},
      {"program p\n%0 = cell\njump", "3:5: expected an instruction"},
      {"program p\n%99999999999 = cell",
       "2:13: expected a number from 0 to 2147483647, found 99999999999"},
  };
  for (const auto& [text, wanted] : cases) {
    CAPTURE(text);
    CHECK(error_of(text) == wanted);
  }
  CHECK(error_of("program p", {.text_bytes = 8}) == "1:1: the text is longer than 8 bytes");
  CHECK(error_of("program p\n%0 = cell\n%1 = cell", {.instructions = 1}) ==
        "3:10: more than 1 instructions");
}

TEST_CASE("program text: comments and blank lines do not count") {
  const auto read = parse_program("// a program\nprogram p  // its name\n\n  %0 = cell\n");
  REQUIRE(std::holds_alternative<Program>(read));
  CHECK(to_text(std::get<Program>(read)) == "program p\n  %0 = cell\n");
}
