#include "codegen/wgsl/unused_lines.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <vector>

namespace anneal::wgsl {
namespace {

constexpr std::string_view kLet = "let ";

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// What a line names, or nothing.
std::string_view named(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(kLet)) return {};
  line.remove_prefix(kLet.size());
  return line.substr(0, line.find(' '));
}

}  // namespace

std::string without_unused(std::string_view body, std::string_view effect) {
  std::unordered_set<std::string_view> mentioned;
  auto mention_all = [&](std::string_view line) {
    for (size_t i = 0; i < line.size();) {
      size_t end = i;
      while (end < line.size() && is_of_name(line[end])) ++end;
      if (end > i) mentioned.insert(line.substr(i, end - i));
      i = end + 1;
    }
  };
  std::vector<std::string_view> lines = lines_of(body), kept;
  for (size_t i = lines.size(); i-- > 0;) {
    const std::string_view line = lines[i], name = named(line);
    const bool used =
        name.empty() || mentioned.contains(name) || line.find(effect) != std::string_view::npos;
    if (!used) continue;
    mention_all(line);
    kept.push_back(line);
  }
  std::string text;
  text.reserve(body.size());
  for (size_t i = kept.size(); i-- > 0;) text += kept[i];
  return text;
}

}  // namespace anneal::wgsl
