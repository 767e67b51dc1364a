// JSON, written only. A Json is a finished piece of text: a value, or an array or object that can
// still grow. The JSON library is behind json.cc, as it is slow to compile.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace anneal::cli {

class Json {
 public:
  Json() : text_("null") {}
  Json(bool value) : text_(value ? "true" : "false") {}       // NOLINT(google-explicit-constructor)
  Json(std::string_view value);                               // NOLINT(google-explicit-constructor)
  Json(const char* value) : Json(std::string_view(value)) {}  // NOLINT
  Json(const std::string& value) : Json(std::string_view(value)) {}  // NOLINT
  Json(double value);  // NOLINT(google-explicit-constructor) null where it is not finite
  template <std::integral T>
  Json(T value) : text_(std::to_string(value)) {}  // NOLINT(google-explicit-constructor)

  static Json array() { return Json('[', ']'); }
  static Json object() { return Json('{', '}'); }

  Json& add(const Json& value);                        // to an array
  Json& set(std::string_view key, const Json& value);  // to an object

  const std::string& text() const { return text_; }

 private:
  Json(char open, char close) : text_{open, close} {}
  void append(std::string_view item);

  std::string text_;
};

}  // namespace anneal::cli
