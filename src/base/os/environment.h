// Settings of the environment (ANNEAL_*), checked: a value that means nothing is an error that
// names the variable, never ignored. Must not know what a setting is for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <anneal/error.h>

namespace anneal {

// The environment of the process makes no sense, whatever the program does.
class EnvironmentError : public UserError {
 public:
  EnvironmentError(std::string message, std::string hint)
      : UserError(std::move(message), std::move(hint), std::source_location{}) {}
};

// The value of a variable; empty where there is none.
std::string environment(const char* name);

// A whole number within bounds; nothing where the variable is unset or empty.
std::optional<int64_t> environment_number(const char* name, int64_t least, int64_t most);
// One of these words; nothing where the variable is unset or empty.
std::optional<std::string_view> environment_word(const char* name,
                                                 std::initializer_list<std::string_view> words);

// "1048576", "512M", "2 GiB"; none where it is no number of bytes.
std::optional<int64_t> parse_bytes(std::string_view text);
// A number of bytes; nothing where the variable is unset or empty.
std::optional<int64_t> environment_bytes(const char* name);

}  // namespace anneal
