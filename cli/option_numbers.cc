#include "cli/option_numbers.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "cli/failure.h"

namespace anneal::cli {
namespace {

template <typename T>
std::optional<T> whole_text(const std::string& text) {
  T value{};
  const char *begin = text.data(), *end = begin + text.size();
  if (!text.empty() && *begin == '+') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end) return {};
  return value;
}

// 1e3 is 1000; 1.5 is no whole number.
std::optional<int64_t> count_of(const std::string& text) {
  if (const std::optional<int64_t> value = whole_text<int64_t>(text)) return value;
  constexpr double kExact = int64_t{1} << 53;
  const std::optional<double> value = whole_text<double>(text);
  if (!value || !(std::abs(*value) <= kExact) || *value != std::trunc(*value)) return {};
  return static_cast<int64_t>(*value);
}

std::string range_text(const CountRange& range) {
  return fmt::format("from {} to {}", range.least, range.most);
}

std::string range_text(const RealRange& range) {
  if (!std::isinf(range.most)) return fmt::format("from {} to {}", range.least, range.most);
  return range.above ? fmt::format("above {}", range.least)
                     : fmt::format("{} or more", range.least);
}

[[noreturn]] void fail_number(const std::string& option, const std::string& must,
                              const std::string& text) {
  throw UsageError(fmt::format("{} must be {}, got {}", option, must, text),
                   "--help says what each option takes");
}

}  // namespace

int64_t parse_count(const std::string& option, const std::string& text, const CountRange& range) {
  const std::optional<int64_t> value = count_of(text);
  if (!value) fail_number(option, "a whole number " + range_text(range), text);
  if (*value < range.least || *value > range.most) fail_number(option, range_text(range), text);
  return *value;
}

std::vector<int> parse_counts(const std::string& option, const std::string& text,
                              const CountRange& range) {
  std::vector<int> values;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    values.push_back(static_cast<int>(parse_count(option, part, range)));
  if (values.empty()) parse_count(option, text, range);
  return values;
}

double parse_real(const std::string& option, const std::string& text, const RealRange& range) {
  const std::optional<double> value = whole_text<double>(text);
  if (!value || !std::isfinite(*value)) fail_number(option, "a number " + range_text(range), text);
  const bool enough = range.above ? *value > range.least : *value >= range.least;
  if (!enough || *value > range.most) fail_number(option, range_text(range), text);
  return *value;
}

}  // namespace anneal::cli
