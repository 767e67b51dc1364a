#include "base/os/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"

namespace anneal {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

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

std::optional<int64_t> parse_bytes(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  std::string unit;
  for (const char* at = end; at != text.data() + text.size(); ++at)
    if (*at != ' ' && *at != '\n')
      unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  constexpr std::string_view kUnits = "kmgt";
  int64_t factor = 1;
  if (!unit.empty() && kUnits.find(unit[0]) != std::string_view::npos) {
    factor = int64_t{1} << (10 * (kUnits.find(unit[0]) + 1));
    unit.erase(0, 1);
    if (unit == "ib") unit = "b";
  }
  if (!unit.empty() && unit != "b") return std::nullopt;
  return checked_mul(number, factor);
}

std::optional<int64_t> environment_bytes(const char* name) {
  const std::string text = environment(name);
  if (text.empty()) return {};
  if (const std::optional<int64_t> bytes = parse_bytes(text)) return bytes;
  throw EnvironmentError(fmt::format("{} is \"{}\", which is no number of bytes", name, text),
                         "write 536870912, or 512M");
}

}  // namespace anneal
