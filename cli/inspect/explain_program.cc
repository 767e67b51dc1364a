// Explains a program by the rules that fire when its step is simplified.
#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/inspect/explain.h"
#include "cli/inspect/explain_text.h"
#include "cli/inspect/programs.h"
#include "cli/output.h"
#include "codegen/target_kernels.h"

namespace anneal::cli {
namespace {

// An event holds all that its node reaches. Shown are the node's own line and those of its
// operands.
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

struct Rewritten {
  size_t nodes_before, nodes_after;
  RewriteLog log;
};

void write_program_json(const models::ProgramRow& row, const Rewritten& rewritten,
                        const std::vector<std::string>& disabled) {
  Json events = Json::array(), left_out = Json::array();
  for (const std::string& name : disabled) left_out.add(name);
  for (const RewriteLog::Event& event : rewritten.log.events())
    events.add(Json::object()
                   .set("set", event.set)
                   .set("rule", event.rule)
                   .set("origin", event.origin)
                   .set("before", event.before)
                   .set("after", event.after));
  write(Json::object()
            .set("program", row.name)
            .set("nodes_before", rewritten.nodes_before)
            .set("nodes_after", rewritten.nodes_after)
            .set("disabled", left_out)
            .set("hits", hits_json(ordered_hits(rewritten.log)))
            .set("events", events)
            .text() +
        "\n");
}

void write_program(const models::ProgramRow& row, const Rewritten& rewritten,
                   const std::vector<std::string>& disabled) {
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), row.description));
  write(fmt::format("simplifying the step: {} nodes before, {} after\n", rewritten.nodes_before,
                    rewritten.nodes_after));
  if (!disabled.empty()) write(fmt::format("disabled: {}\n", fmt::join(disabled, ", ")));

  write("\nrules that fired\n");
  write_hits(ordered_hits(rewritten.log));

  const auto& events = rewritten.log.events();
  if (!events.empty()) write(fmt::format("\nthe first {} of them\n", events.size()));
  for (size_t i = 0; i < events.size(); ++i) {
    const RewriteLog::Event& event = events[i];
    write(fmt::format("  {}. {}/{}{}\n", i + 1, event.set, event.rule,
                      event.origin.empty() ? "" : paint(Colour::Dim, "  " + event.origin)));
    write(indented(nearest_lines(event.before), paint(Colour::Ember, "     - ")));
    write(indented(nearest_lines(event.after), paint(Colour::Teal, "     + ")));
  }
}

}  // namespace

void explain_program(const models::ProgramRow& row, const ExplainOptions& options) {
  const models::Program program = build(row);
  const std::vector<NodeRef> roots = step_roots(program);
  Rewritten rewritten{count_nodes(roots), 0, RewriteLog(options.events)};
  rewritten.nodes_after = count_nodes(simplified_for(roots, {}, &rewritten.log, options.disabled));
  options.json ? write_program_json(row, rewritten, options.disabled)
               : write_program(row, rewritten, options.disabled);
}

}  // namespace anneal::cli
