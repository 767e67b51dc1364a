#include "cli/help.h"

#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace anneal::cli {
namespace {

constexpr size_t kWidth = 80, kNames = 22;  // columns: of a line, of names of options

// --steps N, or the name of an argument.
std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  const std::string name = option.get_name(false, true), type = option.get_type_name();
  const bool is_flag = option.get_items_expected_max() == 0;
  return is_flag || type.empty() ? name : fmt::format("{} {}", name, type);
}

std::string row_of(const CLI::Option& option) {
  const std::string name = "  " + name_of(option);
  const std::string text = wrapped(option.get_description(), kWidth, kNames);
  if (name.size() + 2 <= kNames) return fmt::format("{:<{}}{}\n", name, kNames, text);
  return fmt::format("{}\n{:{}}{}\n", name, "", kNames, text);
}

}  // namespace

std::string wrapped(std::string_view text, size_t width, size_t margin) {
  std::string result;
  size_t column = margin;  // the first line begins where the margin ends
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (column > margin && column + 1 + word.size() > width) {
      result += fmt::format("\n{:{}}", "", margin);
      column = margin;
    } else if (column > margin) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string command_help(const CLI::App& command) {
  std::string usage = fmt::format("usage: anneal {}", command.get_name()), arguments, options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) usage += " " + option->get_name();
    (option->get_positional() ? arguments : options) += row_of(*option);
  }
  return fmt::format("{} [options]\n\n{}\n\n{}{}{}\n{}\n", usage, command.get_description(),
                     arguments, arguments.empty() ? "" : "\n", options, command.get_footer());
}

}  // namespace anneal::cli
