// What a user is told when a call fails.
#pragma once

#include <string>
#include <string_view>

#include <anneal/error.h>

namespace anneal {

// The text of the UserError that a call ends with.
template <typename Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace anneal
