// Any text as a Program: accepted text prints to text that is accepted again and prints the same,
// whether it is valid or not.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "kernel/program/program.h"

using namespace anneal;

namespace {

constexpr ProgramLimits kLimits{.text_bytes = 1 << 16, .instructions = 10'000};

void require(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = parse_program({reinterpret_cast<const char*>(data), size}, kLimits);
  if (const auto* error = std::get_if<TextError>(&read)) {
    require(error->at.line > 0 && error->at.column > 0 && !error->message.empty(), "no place", "");
    require(error->message.size() < 200'000, "a message without bound", "");
    return 0;
  }
  const auto& program = std::get<Program>(read);
  (void)verify(program);
  const std::string text = to_text(program);
  const auto again = parse_program(text);
  require(std::holds_alternative<Program>(again), "printed text is refused", text);
  require(to_text(std::get<Program>(again)) == text, "other text came back", text);
  return 0;
}
