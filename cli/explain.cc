// Explains from the live tables: ops.def, the derivative rules, the rewrite rules and a real run of
// them. Must not hold a text about a rule or an op that could differ from what runs.
#include "explain.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/error.h>

#include "ir/infer.h"
#include "ir/print.h"
#include "json.h"
#include "op_example.h"
#include "output.h"
#include "programs.h"
#include "transform/derivative.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

using Hits = std::vector<RewriteLog::Hit>;

Json hits_json(const Hits& hits) {
  Json list = Json::array();
  for (const RewriteLog::Hit& hit : hits)
    list.add(Json::object().set("set", hit.set).set("rule", hit.rule).set("count", hit.count));
  return list;
}

void check_disabled(const std::vector<std::string>& disabled) {
  std::vector<std::string> names;
  for (const RuleSet* set : program_rules()) {
    names.emplace_back(set->name());
    for (const Rule& rule : set->rules())
      names.push_back(fmt::format("{}/{}", set->name(), rule.name));
  }
  for (const std::string& name : disabled)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail_unknown("rule set or rule", name,
                   std::vector<std::string_view>(names.begin(), names.end()));
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

// ---- an op

// The op's row in words.
std::string sources_text(const OpInfo& row) {
  constexpr std::string_view kNames = "abcd";
  std::vector<std::string> parts;
  if (row.sources > 0) {
    std::vector<std::string> names;
    for (size_t i = 0; i < row.sources; ++i) {
      const bool selector = row.type == TypeRule::Select && i == 0;
      const bool places = row.shape >= ShapeRule::Gather && i == 1;
      names.push_back(fmt::format("{}{}", kNames[i],
                                  selector ? " (bool)"
                                  : places ? " (an integer)"
                                           : ""));
    }
    parts.push_back(fmt::format("{} {}: {}", row.sources, row.sources == 1 ? "tensor" : "tensors",
                                fmt::join(names, ", ")));
  }
  switch (row.tail) {
    case Tail::None: break;
    case Tail::Dims: parts.emplace_back("a size for each axis of the result"); break;
    case Tail::Pairs: parts.emplace_back("two index expressions for each axis"); break;
    case Tail::Inputs: parts.emplace_back("any number of input tensors"); break;
  }
  switch (row.arg) {
    case ArgKind::None: break;
    case ArgKind::Scalar: parts.emplace_back("a value"); break;
    case ArgKind::Axis: parts.emplace_back("an axis"); break;
    case ArgKind::Axes: parts.emplace_back("axes"); break;
    case ArgKind::Symbol: parts.emplace_back("a name"); break;
  }
  return fmt::format("{}{}", fmt::join(parts, "; "), row.commutative ? "; in either order" : "");
}

std::vector<std::string_view> accepted_dtypes(const OpInfo& row) {
  std::vector<std::string_view> names;
  for (DType dtype : kAllDTypes)
    if (accepts(row, dtype)) names.push_back(name(dtype));
  return names;
}

enum class Mode { Reverse, Forward };

// What differentiating does at an op that its table leaves out: grad.cc, jvp.cc.
std::string without_rule(Op op, Mode mode) {
  const OpInfo& row = info(op);
  if (op == Op::CustomGrad && mode == Mode::Reverse)
    return "the function that was given to custom_gradient()";
  if (row.sources == 0) return "no rule: it has no tensor sources";
  if (!(row.accepts & kFloatClass) || row.type == TypeRule::Bool)
    return "no rule and none needed: its result is no float, so that nothing flows through it";
  return mode == Mode::Reverse
             ? "no rule: grad() through it is an error that names the op and the line; use "
               "stop_gradient() or custom_gradient() around it"
             : "no rule: jvp() through it is an error that names the op and the line; use "
               "stop_gradient() around it";
}

std::string rule_text(const DerivativeRule* rule, Op op, Mode mode) {
  return rule ? std::string(rule->text) : without_rule(op, mode);
}

// The rules whose pattern can have this op at its root.
std::vector<std::pair<std::string_view, std::string_view>> rules_of(Op op) {
  std::vector<std::pair<std::string_view, std::string_view>> rules;
  for (const RuleSet* set : program_rules())
    for (const Rule& rule : set->rules())
      if (rule.pattern.matches_any_op() || rule.pattern.ops().contains(op))
        rules.emplace_back(set->name(), rule.name);
  return rules;
}

struct ShownExample {
  bool gradient;  // whether it is the op's gradient or, where there is none, the op alone
  std::string before, after;
  RewriteLog log;
};

ShownExample shown_example(Op op, const DisabledRules& disabled) {
  const OpExample example = example_of(op);
  ShownExample shown{!example.gradients.empty(), {}, {}, RewriteLog()};
  const std::vector<NodeRef> roots =
      shown.gradient ? nodes_of(example.gradients) : std::vector{example.result.node()};
  shown.before = print(roots);
  shown.after = print(simplify_program(roots, &shown.log, disabled));
  return shown;
}

void write_op_json(Op op, const ShownExample& example) {
  const OpInfo& row = info(op);
  auto rule_json = [](const DerivativeRule* rule) { return rule ? Json(rule->text) : Json(); };
  Json dtypes = Json::array(), rules = Json::array();
  for (std::string_view dtype : accepted_dtypes(row)) dtypes.add(dtype);
  for (const auto& [set, rule] : rules_of(op))
    rules.add(Json::object().set("set", set).set("rule", rule));
  write(Json::object()
            .set("op", row.text)
            .set("meaning", row.meaning)
            .set("sources", sources_text(row))
            .set("dtypes", dtypes)
            .set("gradient", rule_json(gradient_rule(op)))
            .set("gradient_text", rule_text(gradient_rule(op), op, Mode::Reverse))
            .set("forward", rule_json(forward_rule(op)))
            .set("forward_text", rule_text(forward_rule(op), op, Mode::Forward))
            .set("rules", rules)
            .set("example", Json::object()
                                .set("shows", example.gradient ? "gradient" : "op")
                                .set("before", example.before)
                                .set("after", example.after)
                                .set("hits", hits_json(example.log.hits())))
            .text() +
        "\n");
}

void write_row(std::string_view title, std::string_view text) {
  write(fmt::format("  {} {}\n", paint(Colour::Dim, fmt::format("{:<9}", title)), text));
}

void write_op(Op op, const ShownExample& example) {
  const OpInfo& row = info(op);
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.text), row.meaning));
  write_row("sources", sources_text(row));
  write_row("dtypes", fmt::format("{}", fmt::join(accepted_dtypes(row), ", ")));
  write_row("gradient", rule_text(gradient_rule(op), op, Mode::Reverse));
  write_row("forward", rule_text(forward_rule(op), op, Mode::Forward));
  if (gradient_rule(op) || forward_rule(op))
    write_row("", paint(Colour::Dim,
                        "one part for each source a, b, c; y is the result, g its "
                        "gradient, da, db, dc are tangents"));

  const auto rules = rules_of(op);
  write(rules.empty() ? "\nno rewrite rule starts at this op\n"
                      : "\nrewrite rules that can start at this op\n");
  for (size_t i = 0; i < rules.size();) {
    std::vector<std::string_view> names;
    const std::string_view set = rules[i].first;
    for (; i < rules.size() && rules[i].first == set; ++i) names.push_back(rules[i].second);
    write(fmt::format("  {:<17} {}\n", set, fmt::join(names, ", ")));
  }

  write(example.gradient ? "\nits gradient, for g that of the result\n" : "\nan example\n");
  write(indented(example.before, "  "));
  if (example.log.hits().empty()) return write("no rule changes it\n");
  std::vector<std::string> fired;
  for (const RewriteLog::Hit& hit : example.log.hits())
    fired.push_back(fmt::format("{}/{}", hit.set, hit.rule));
  write(fmt::format("after {}\n", fmt::join(fired, ", ")));
  write(indented(example.after, "  "));
}

// ---- a program

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

// In the order in which rules are tried.
Hits ordered_hits(const RewriteLog& log) {
  Hits hits;
  for (const RuleSet* set : program_rules())
    for (const Rule& rule : set->rules())
      for (const RewriteLog::Hit& hit : log.hits())
        if (hit.set == set->name() && hit.rule == rule.name) hits.push_back(hit);
  return hits;
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

  int64_t total = 0;
  write("\nrules that fired\n");
  for (const RewriteLog::Hit& hit : ordered_hits(rewritten.log)) {
    write(fmt::format("  {:<17} {:<24} {:>7}\n", hit.set, hit.rule, hit.count));
    total += hit.count;
  }
  write(fmt::format("  {:<42} {:>7}\n", "all", total));

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

void explain_program(const models::ProgramRow& row, const ExplainOptions& options) {
  const models::Program program = row.build();
  const std::vector<NodeRef> roots = step_roots(program);
  Rewritten rewritten{count_nodes(roots), 0, RewriteLog(options.events)};
  rewritten.nodes_after = count_nodes(simplify_program(roots, &rewritten.log, options.disabled));
  options.json ? write_program_json(row, rewritten, options.disabled)
               : write_program(row, rewritten, options.disabled);
}

}  // namespace

void explain(const ExplainOptions& options) {
  check_disabled(options.disabled);
  if (std::optional<Op> op = parse_op(options.target)) {
    const ShownExample example = shown_example(*op, options.disabled);
    return options.json ? write_op_json(*op, example) : write_op(*op, example);
  }
  if (const models::ProgramRow* row = models::find_program(options.target))
    return explain_program(*row, options);
  std::vector<std::string_view> names = program_names();
  for (int i = 0; i < kTensorOpCount; ++i) names.push_back(name(static_cast<Op>(i)));
  fail_unknown("op or program", options.target, names);
}

}  // namespace anneal::cli
