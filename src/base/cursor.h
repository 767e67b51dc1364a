// Reads text through a bounded view and knows the line and column it is at: the base of every text
// parser. Must not know any grammar, never throws on bad text and never reads beyond the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace anneal {

struct TextPosition {
  size_t line = 1, column = 1;  // from 1; columns count bytes
};

struct TextError {
  TextPosition at;
  std::string message;
};

// Errors are sticky: the first one is kept, and every reader answers with nothing after it, so a
// parser may check once a statement instead of once a token.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool at_end() const { return offset_ == text_.size(); }
  // The byte `ahead` of the current one; 0 beyond the end, where at_end() tells the difference.
  char peek(size_t ahead = 0) const {
    return ahead < text_.size() - offset_ ? text_[offset_ + ahead] : '\0';
  }
  void advance(size_t count = 1);
  size_t offset() const { return offset_; }
  TextPosition position() const { return {line_, offset_ - line_start_ + 1}; }

  // Spaces, tabs and carriage returns, but not line ends.
  void skip_blanks();
  // Up to the line end, which stays.
  void skip_line();

  // Of texts with one statement a line, in which // begins a comment: past blanks and a comment; to
  // the next line with something on it, if there is one; and an error unless this one ends here.
  void skip_comment();
  bool next_line();
  void end_of_line();

  // Moves past the text if it comes next.
  bool accept(char wanted);
  bool accept(std::string_view wanted);
  // The same, and an error if it does not.
  bool expect(char wanted);
  bool expect(std::string_view wanted);

  // The bytes up to the first that `belongs` refuses; may be empty.
  std::string_view take_while(bool (*belongs)(char));
  // A letter or '_', then letters, digits and '_'. Empty, without an error, when there is none.
  std::string_view identifier();
  // Decimal digits, perhaps after '-'. An error when there are none or they do not fit.
  std::optional<int64_t> integer();
  // Text between double quotes with the escapes of quote(), at most `limit` bytes long.
  std::optional<std::string> quoted(size_t limit);

  void fail(std::string message) { fail_at(position(), std::move(message)); }
  void fail_at(TextPosition at, std::string message);
  bool failed() const { return error_.has_value(); }
  const std::optional<TextError>& error() const { return error_; }

  // What comes next, for messages: "'x'", "byte 0x07", "the end of the line".
  std::string found() const;

 private:
  std::optional<char> escape();

  std::string_view text_;
  size_t offset_ = 0, line_ = 1, line_start_ = 0;
  std::optional<TextError> error_;
};

bool is_identifier(std::string_view text);

// The text between double quotes, in printable ASCII whatever the bytes: \" \\ \n \r \t \xHH.
std::string quote(std::string_view text);

}  // namespace anneal
