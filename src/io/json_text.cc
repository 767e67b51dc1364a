#include "io/json_text.h"

#include <fmt/format.h>

namespace anneal::io {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, uint32_t code) {
  auto byte = [&](uint32_t value) { text += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 63));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 63));
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  }
}

// How many bytes the character at the start of `text` has; 0: none that UTF-8 allows.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const uint32_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Too long a form, halves of pairs, beyond the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

}  // namespace

void JsonText::skip_blanks() {
  while (cursor_.peek() == ' ' || cursor_.peek() == '\t' || cursor_.peek() == '\n' ||
         cursor_.peek() == '\r')
    cursor_.advance();
}

bool JsonText::accept(char wanted) {
  skip_blanks();
  return cursor_.accept(wanted);
}

bool JsonText::expect(char wanted) {
  skip_blanks();
  return cursor_.expect(wanted);
}

bool JsonText::at_end() {
  skip_blanks();
  return cursor_.at_end();
}

std::optional<uint32_t> JsonText::four_digits() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = cursor_.peek();
    const int digit = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
    if (digit < 0) {
      fail("expected a hexadecimal digit, found " + cursor_.found());
      return {};
    }
    code = code * 16 + static_cast<uint32_t>(digit);
    cursor_.advance();
  }
  return code;
}

// After the backslash.
bool JsonText::escape(std::string& text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const char letter = cursor_.peek();
  const size_t found = letter == '\0' ? std::string_view::npos : kLetters.find(letter);
  if (found != std::string_view::npos) {
    text += kMeant[found];
    cursor_.advance();
    return true;
  }
  if (letter != 'u') {
    fail("there is no escape of " + cursor_.found());
    return false;
  }
  cursor_.advance();
  std::optional<uint32_t> code = four_digits();
  if (!code) return false;
  if (*code >= 0xd800 && *code < 0xdc00 && cursor_.accept("\\u")) {
    const std::optional<uint32_t> second = four_digits();
    if (!second) return false;
    if (*second >= 0xdc00 && *second < 0xe000)
      code = 0x10000 + ((*code - 0xd800) << 10) + (*second - 0xdc00);
  }
  if (*code >= 0xd800 && *code < 0xe000) {
    fail("half of a surrogate pair");
    return false;
  }
  append_utf8(text, *code);
  return true;
}

std::optional<std::string> JsonText::string(uint64_t limit) {
  if (!expect('"')) return {};
  std::string text;
  while (!cursor_.accept('"')) {
    const char c = cursor_.peek();
    if (cursor_.at_end() || static_cast<unsigned char>(c) < 0x20) {
      fail("expected '\"', found " + cursor_.found());
      return {};
    }
    if (text.size() >= limit) {
      fail(fmt::format("a string of more than {} bytes", limit));
      return {};
    }
    cursor_.advance();
    if (c != '\\')
      text += c;
    else if (!escape(text))
      return {};
  }
  if (!is_utf8(text)) {
    fail("a string that is not UTF-8");
    return {};
  }
  return text;
}

std::optional<int64_t> JsonText::whole() {
  skip_blanks();
  if (!is_digit(cursor_.peek())) {
    fail("expected a whole number, found " + cursor_.found());
    return {};
  }
  if (cursor_.peek() == '0' && is_digit(cursor_.peek(1))) {
    fail("a number that starts with 0");
    return {};
  }
  return cursor_.integer();
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    switch (c) {
      case '"': quoted += "\\\""; break;
      case '\\': quoted += "\\\\"; break;
      case '\b': quoted += "\\b"; break;
      case '\f': quoted += "\\f"; break;
      case '\n': quoted += "\\n"; break;
      case '\r': quoted += "\\r"; break;
      case '\t': quoted += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace anneal::io
