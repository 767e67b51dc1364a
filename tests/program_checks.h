// What tests of passes over Programs do with texts: read them, run a pass, run what came out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/program/program.h"
#include "program_interpreter.h"

namespace anneal {

inline Program parsed(std::string_view text) {
  const auto read = parse_program(text);
  if (const auto* error = std::get_if<TextError>(&read)) {
    FAIL(fmt::format("{}:{}: {}", error->at.line, error->at.column, error->message));
    return {};
  }
  return std::get<Program>(read);
}

inline std::string after(void (*pass)(Program&), std::string_view text) {
  Program program = parsed(text);
  pass(program);
  CHECK(verify(program) == "");
  return to_text(program);
}

inline std::vector<Value> ran(const Program& program, std::vector<Value> values, int64_t cells,
                              std::span<const int64_t> sizes = {}) {
  std::vector<Value*> pointers;
  for (Value& value : values) pointers.push_back(&value);
  run_program(program, pointers, sizes, cells);
  return values;
}

}  // namespace anneal
