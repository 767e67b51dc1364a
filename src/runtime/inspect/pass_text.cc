#include "runtime/inspect/pass_text.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "rewrite/passes.h"

namespace anneal {

std::string pass_table_head() {
  return fmt::format("  {:<12} {:<20} {:>6} {:>8} {:>9}  {}\n", "stage", "pass", "runs", "changed",
                     "ms", "what it changed");
}

std::string pass_line(const PassTrace::Row& row) {
  if (row.stage.empty()) return fmt::format("  {:<12} {}\n", "", row.pass);
  return fmt::format("  {:<12} {:<20} {:>6} {:>8} {:>9.3f}  {}\n", row.stage, row.pass, row.runs,
                     row.changes, row.seconds * 1e3,
                     row.changes > 0 ? change_text(row.before, row.after, row.parts) : "");
}

std::string rule_line(const RewriteLog::Hit& hit) {
  return fmt::format("  {:<12}   {:<17} {:<24} {:>7}", "", hit.set, hit.rule, hit.count);
}

std::string summary_line(const PassTrace& trace) {
  double seconds = 0;
  int64_t rules = 0;
  for (const PassTrace::Row& row : trace.rows()) seconds += row.seconds;
  for (const RewriteLog::Hit& hit : trace.hits()) rules += hit.count;
  return fmt::format("  {:<12} {:<20} {:>6} {:>8} {:>9.3f}  {} rewrites by rules\n", "all", "", "",
                     "", seconds * 1e3, rules);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string indented(std::string_view text, std::string_view margin) {
  std::string result;
  for (std::string_view line : lines_of(text)) result += fmt::format("{}{}\n", margin, line);
  return result;
}

std::string nearest_lines(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.size() < 2) return std::string(text);  // `return` alone: of an index constant
  const std::string_view own = lines[lines.size() - 2];
  auto is_operand = [&](std::string_view line) {
    const std::string name(line.substr(0, line.find(' ')));
    const size_t at = name.starts_with('%') ? own.find(" " + name) : std::string_view::npos;
    return at != std::string_view::npos && own.substr(at).find_first_of(", ", 1) == name.size() + 1;
  };
  std::string shown;
  size_t hidden = lines.size() - 2;
  for (std::string_view line : std::span(lines).first(lines.size() - 2)) {
    if (!is_operand(line)) continue;
    shown += fmt::format("{}\n", line);
    --hidden;
  }
  if (hidden > 0)
    shown.insert(0, fmt::format("… {} other {}\n", hidden, hidden == 1 ? "line" : "lines"));
  return fmt::format("{}{}\n", shown, own);
}

std::string to_text(const PassTrace& trace) {
  std::string text = pass_table_head();
  for (const PassTrace::Row& row : trace.rows()) {
    text += pass_line(row);
    for (const RewriteLog::Hit& hit : row.rules.hits()) text += rule_line(hit) + "\n";
  }
  text += summary_line(trace);
  for (const PassTrace::Row& row : trace.rows())
    for (const RewriteLog::Event& event : row.rules.events())
      text += fmt::format("\n{}, {}: {}/{}  {}\n{}{}", row.stage, row.pass, event.set, event.rule,
                          event.origin, indented(nearest_lines(event.before), "  - "),
                          indented(nearest_lines(event.after), "  + "));
  return text;
}

}  // namespace anneal
