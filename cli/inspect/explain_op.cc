// Explains an op from the live tables: ops.def, the derivative rules, the rewrite rules and a real
// run of them. Must not hold a text about a rule or an op that could differ from what runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/inspect/explain.h"
#include "cli/inspect/explain_text.h"
#include "cli/inspect/op_example.h"
#include "cli/inspect/programs.h"
#include "cli/output.h"
#include "codegen/pipeline.h"
#include "ir/infer.h"
#include "ir/print.h"
#include "transform/derivative.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

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
  for (const RuleSet* set : rule_sets())
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

void write_op(Op op, const ShownExample& example) {
  const OpInfo& row = info(op);
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.text), row.meaning));
  write_fact("sources", sources_text(row));
  write_fact("dtypes", fmt::format("{}", fmt::join(accepted_dtypes(row), ", ")));
  write_fact("gradient", rule_text(gradient_rule(op), op, Mode::Reverse));
  write_fact("forward", rule_text(forward_rule(op), op, Mode::Forward));
  if (gradient_rule(op) || forward_rule(op))
    write_fact("", paint(Colour::Dim,
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

}  // namespace

void explain_op(Op op, const ExplainOptions& options) {
  const ShownExample example = shown_example(op, options.disabled);
  options.json ? write_op_json(op, example) : write_op(op, example);
}

}  // namespace anneal::cli
