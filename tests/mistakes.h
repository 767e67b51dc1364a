// Tables of mistakes: calls that fail, and what users are told about each.
#pragma once

#include <exception>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <anneal/error.h>

namespace anneal {

struct Mistake {
  unsigned line = 0;  // of the call, which the error names
  std::function<void()> make;
  // What it says first, or anywhere where it begins with "..."; and a part of the hint.
  std::string message, hint;
};

inline bool says(std::string_view text, std::string_view message) {
  constexpr std::string_view kAnywhere = "...";
  if (!message.starts_with(kAnywhere)) return text.starts_with(message);
  return text.find(message.substr(kAnywhere.size())) != std::string_view::npos;
}

// Fails where a call does not, or says something else, or names another line than its own in the
// file that this is called from.
inline void check_mistakes(std::span<const Mistake> mistakes,
                           const std::source_location& table = std::source_location::current()) {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.line);
    CAPTURE(mistake.message);
    try {
      mistake.make();
      FAIL_CHECK("no error");
    } catch (const UserError& error) {
      INFO(std::string(error.what()));
      CHECK(says(error.message(), mistake.message));
      CHECK(error.hint().find(mistake.hint) != std::string::npos);
      CHECK(error.where().line() == mistake.line);
      const std::string_view file = table.file_name();
      CHECK(std::string_view(error.where().file_name()) == file);
      CHECK(std::string(error.what()).find(file.substr(file.rfind('/') + 1)) != std::string::npos);
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}

}  // namespace anneal
