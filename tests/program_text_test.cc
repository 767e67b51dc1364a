// Programs as text: what is written is read back, what is wrong is told with its place, and
// programs in files (tests/programs) run alike in the interpreter and as machine code.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/program/program_content.h"
#include "kernel_runner.h"
#include "lower_check.h"
#include "program_interpreter.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// How a file wants to be run: its first line, "// cells 3 sizes 7 9 buffers 64 12".
struct Run {
  int64_t cells = 0;
  std::vector<int64_t> sizes, buffers;
};

Run run_of(const std::string& text) {
  std::istringstream line(text.substr(0, text.find('\n')));
  Run run;
  std::vector<int64_t>* list = nullptr;
  for (std::string word; line >> word;) {
    if (word == "sizes" || word == "buffers")
      list = word == "sizes" ? &run.sizes : &run.buffers;
    else if (word == "cells")
      line >> run.cells;
    else if (list)
      list->push_back(std::stoll(word));
  }
  return run;
}

std::vector<std::filesystem::path> program_files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ANNEAL_SOURCE_DIR) + "/tests/programs"))
    if (entry.path().extension() == ".program") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

std::string error_of(std::string_view text, const ProgramLimits& limits = {}) {
  const auto read = parse_program(text, limits);
  const auto* error = std::get_if<TextError>(&read);
  return error ? fmt::format("{}:{}: {}", error->at.line, error->at.column, error->message) : "";
}

}  // namespace

TEST_CASE("program text: programs in files run alike in the interpreter and as machine code") {
  const std::vector<std::filesystem::path> paths = program_files();
  CHECK(paths.size() >= 2);
  for (const std::filesystem::path& path : paths) {
    CAPTURE(path.filename().string());
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    CHECK(error_of(text.str()) == "");
    const auto read = parse_program(text.str());
    const auto* program = std::get_if<Program>(&read);
    if (!program) continue;
    REQUIRE(verify(*program) == "");
    const Run run = run_of(text.str());
    REQUIRE(run.buffers.size() == program->buffers.size());
    REQUIRE(run.cells > 0);

    std::mt19937_64 random(7);
    std::vector<Value> wanted;
    std::vector<Memory> memories;
    for (size_t i = 0; i < run.buffers.size(); ++i) {
      wanted.push_back(random_value(program->buffers[i].dtype, run.buffers[i], random));
      memories.emplace_back(program->buffers[i].dtype, static_cast<size_t>(run.buffers[i]));
      for (int64_t at = 0; at < run.buffers[i]; ++at)
        memories[i].set(static_cast<size_t>(at), wanted[i].at(at));
    }
    std::vector<Value*> values;
    for (Value& value : wanted) values.push_back(&value);
    run_program(*program, values, run.sizes, run.cells);
    std::vector<void*> pointers;
    for (Memory& memory : memories) pointers.push_back(memory.bytes.data());
    run_on(compile(*program), *program, pointers, run.cells, run.sizes);
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
