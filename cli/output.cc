#include "cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace anneal::cli {
namespace {

bool colours_wanted() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return std::string_view(value ? value : "");
  };
  return isatty(fileno(stdout)) != 0 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::None: return "";
    case Colour::Teal: return "38;5;37";
    case Colour::Ember: return "38;5;208";
    case Colour::Gold: return "38;5;220";
    case Colour::Dim: return "2";
    case Colour::Bold: return "1";
  }
  return "";
}

// How many letters to insert, remove, change or swap with the next to make one the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_above, above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    two_above = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

OutputError::OutputError(int error)
    : std::runtime_error(fmt::format("cannot write the output: {}",
                                     std::strerror(error))),  // NOLINT(concurrency-mt-unsafe)
      error_(error) {}

bool OutputError::reader_gone() const { return error_ == EPIPE; }

void write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw OutputError(errno);
}

void flush() {
  if (std::fflush(stdout) != 0) throw OutputError(errno);
}

void check_reader() {
  pollfd end{STDOUT_FILENO, 0, 0};
  if (poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0) throw OutputError(EPIPE);
}

std::string bytes_text(int64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  const bool whole = value == static_cast<double>(static_cast<int64_t>(value));
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kUnits[unit]);
}

std::string paint(Colour colour, std::string_view text) {
  static const bool wanted = colours_wanted();
  if (!wanted || colour == Colour::None || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(colour), text);
}

std::vector<std::string_view> near_names(std::string_view wrong,
                                         std::span<const std::string_view> names) {
  // A name with the wrong one inside it ("sum" in "reduce_sum") is as near as one letter off.
  std::vector<std::pair<size_t, size_t>> ranked;  // distance, then the place in the list
  for (size_t i = 0; i < names.size(); ++i) {
    const bool inside = wrong.size() >= 3 && names[i].find(wrong) != std::string_view::npos;
    const size_t distance = inside ? 1 : edit_distance(wrong, names[i]);
    if (distance <= std::max<size_t>(1, std::min(wrong.size(), names[i].size()) / 3))
      ranked.emplace_back(distance, i);
  }
  std::ranges::sort(ranked);
  constexpr size_t kGuesses = 4;
  std::vector<std::string_view> result;
  for (size_t i = 0; i < std::min(ranked.size(), kGuesses); ++i)
    result.push_back(names[ranked[i].second]);
  return result;
}

}  // namespace anneal::cli
