#include "base/environment.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"

namespace anneal {

std::optional<int64_t> environment_number(const char* name, int64_t least, int64_t most) {
  const std::string text = environment(name);
  if (text.empty()) return {};
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw EnvironmentError(
      fmt::format("{} must be a whole number from {} to {}, got \"{}\"", name, least, most, text),
      "set it to such a number, or unset it");
}

std::optional<std::string_view> environment_word(const char* name,
                                                 std::initializer_list<std::string_view> words) {
  const std::string text = environment(name);
  if (text.empty()) return {};
  const auto word = std::ranges::find(words, text);
  if (word != words.end()) return *word;
  throw EnvironmentError(
      fmt::format("{} must be {}, got \"{}\"", name, fmt::join(words, " or "), text),
      "set it so, or unset it");
}

}  // namespace anneal
