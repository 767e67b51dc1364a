// The parts of JSON that headers are made of, read and written. Must not recurse on input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/cursor.h"

namespace anneal::io {

// Blanks before a token are skipped. Errors are the cursor's, and sticky as they are.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : cursor_(text) {}

  bool accept(char wanted);
  bool expect(char wanted);
  bool at_end();  // nothing but blanks is left
  // Between quotes, with JSON's escapes, as UTF-8.
  std::optional<std::string> string(uint64_t limit);
  // A whole number without sign, at most 2^63 - 1.
  std::optional<int64_t> whole();

  void fail(std::string message) { cursor_.fail(std::move(message)); }
  bool failed() const { return cursor_.failed(); }
  const std::optional<TextError>& error() const { return cursor_.error(); }

 private:
  void skip_blanks();
  bool escape(std::string& text);
  std::optional<uint32_t> four_digits();

  Cursor cursor_;
};

bool is_utf8(std::string_view text);
// Between quotes, as serde writes it: only what must be escaped is. The text is UTF-8.
std::string json_quote(std::string_view text);

}  // namespace anneal::io
