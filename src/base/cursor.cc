#include "base/cursor.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace anneal {
namespace {

// By value, not <cctype>: the answers must not depend on a locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Cursor::advance(size_t count) {
  for (size_t end = offset_ + std::min(count, text_.size() - offset_); offset_ < end;) {
    if (text_[offset_++] != '\n') continue;
    ++line_;
    line_start_ = offset_;
  }
}

void Cursor::skip_blanks() {
  while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++offset_;
}

void Cursor::skip_line() { offset_ = std::min(text_.find('\n', offset_), text_.size()); }

void Cursor::skip_comment() {
  skip_blanks();
  if (peek() == '/' && peek(1) == '/') skip_line();
}

bool Cursor::next_line() {
  skip_comment();
  while (accept('\n')) skip_comment();
  return !at_end();
}

void Cursor::end_of_line() {
  skip_comment();
  if (!at_end() && peek() != '\n') fail("expected the end of the line, found " + found());
}

bool Cursor::accept(char wanted) { return accept(std::string_view(&wanted, 1)); }

bool Cursor::accept(std::string_view wanted) {
  if (failed() || text_.substr(offset_, wanted.size()) != wanted) return false;
  advance(wanted.size());
  return true;
}

bool Cursor::expect(char wanted) { return expect(std::string_view(&wanted, 1)); }

bool Cursor::expect(std::string_view wanted) {
  if (accept(wanted)) return true;
  fail(fmt::format("expected '{}', found {}", wanted, found()));
  return false;
}

std::string_view Cursor::take_while(bool (*belongs)(char)) {
  if (failed()) return {};
  size_t end = offset_;
  while (end < text_.size() && belongs(text_[end])) ++end;
  std::string_view taken = text_.substr(offset_, end - offset_);
  advance(taken.size());
  return taken;
}

std::string_view Cursor::identifier() {
  return is_word_start(peek()) ? take_while(is_word) : std::string_view();
}

std::optional<int64_t> Cursor::integer() {
  if (failed()) return std::nullopt;
  int64_t value = 0;
  const char* begin = text_.data() + offset_;
  auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (problem == std::errc::result_out_of_range) {
    fail("the integer does not fit in 64 bits");
    return std::nullopt;
  }
  if (problem != std::errc()) {
    fail(fmt::format("expected an integer, found {}", found()));
    return std::nullopt;
  }
  offset_ += static_cast<size_t>(end - begin);
  return value;
}

std::optional<char> Cursor::escape() {
  const TextPosition start = position();
  advance();
  const char letter = peek();
  switch (letter) {
    case '"':
    case '\\': advance(); return letter;
    case 'n': advance(); return '\n';
    case 'r': advance(); return '\r';
    case 't': advance(); return '\t';
    case 'x': {
      const int high = hex_digit(peek(1)), low = hex_digit(peek(2));
      if (high < 0 || low < 0) break;
      advance(3);
      return static_cast<char>(high * 16 + low);
    }
    default: break;
  }
  fail_at(start, R"(unknown escape; there are \" \\ \n \r \t \xHH)");
  return std::nullopt;
}

std::optional<std::string> Cursor::quoted(size_t limit) {
  const TextPosition start = position();
  if (!accept('"')) {
    fail(fmt::format("expected a quoted name, found {}", found()));
    return std::nullopt;
  }
  std::string result;
  while (!accept('"')) {
    const char c = peek();
    if (at_end() || c == '\n') {
      fail_at(start, "the quoted name is not closed on its line");
      return std::nullopt;
    }
    if (static_cast<unsigned char>(c) < ' ') {
      fail(fmt::format("{} in a quoted name; write it as an escape", found()));
      return std::nullopt;
    }
    if (result.size() == limit) {
      fail_at(start, fmt::format("the quoted name is longer than {} bytes", limit));
      return std::nullopt;
    }
    if (c == '\\') {
      std::optional<char> escaped = escape();
      if (!escaped) return std::nullopt;
      result += *escaped;
    } else {
      result += c;
      ++offset_;
    }
  }
  return result;
}

void Cursor::fail_at(TextPosition at, std::string message) {
  if (!error_) error_ = TextError{at, std::move(message)};
}

std::string Cursor::found() const {
  if (at_end()) return "the end of the text";
  if (peek() == '\n') return "the end of the line";
  if (is_printable(peek())) return fmt::format("'{}'", peek());
  return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(peek()));
}

bool is_identifier(std::string_view text) {
  return !text.empty() && is_word_start(text[0]) && std::all_of(text.begin(), text.end(), is_word);
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '"': result += "\\\""; break;
      case '\\': result += "\\\\"; break;
      case '\n': result += "\\n"; break;
      case '\r': result += "\\r"; break;
      case '\t': result += "\\t"; break;
      default:
        if (is_printable(c)) {
          result += c;
        } else {
          result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
  }
  return result + '"';
}

}  // namespace anneal
