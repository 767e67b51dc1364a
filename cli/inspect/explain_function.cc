// Explains a function that is made of ops by what it becomes: its graph, its gradient, the rules
// that fire and the kernels. Everything is a real run of an example.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/chosen_device.h"
#include "cli/inspect/explain.h"
#include "cli/inspect/explain_text.h"
#include "cli/inspect/programs.h"
#include "cli/output.h"
#include "codegen/target_kernels.h"
#include "ir/print.h"
#include "runtime/inspect/kernel_listing.h"
#include "tensor/named_gradient.h"
#include "transform/derivative.h"

namespace anneal::cli {
namespace {

// One of the two things a function becomes: what it computes, and its gradient.
struct Shown {
  std::string text;  // of the simplified graph
  RewriteLog log;
  std::vector<std::string> kernels;  // by name
};

struct Explained {
  std::vector<std::string> inputs;
  std::string result;
  std::vector<std::string_view> rules;  // rows of gradients by name
  Shown value;
  std::optional<Shown> gradient;  // none where no float goes in and comes out
};

std::string typed_name(NodeRef buffer) {
  return fmt::format("{} {}", buffer->arg.symbol->text(), type_text(buffer));
}

Shown show(const std::vector<Tensor>& wanted, const ExplainOptions& options,
           const ChosenDevice& device) {
  Shown shown;
  shown.text =
      print(simplified_for(nodes_of(wanted), device.capabilities(), &shown.log, options.disabled));
  const Contents nothing{Bindings{}};
  const CanonicalProgram program(Request{nodes_of(wanted), {}, &nothing});
  const KernelListing listing = anneal::list_kernels(program, device.capabilities(), device.name());
  for (const ListedKernel& kernel : listing.kernels)
    shown.kernels.push_back(kernel.name.empty() ? "a copy" : kernel.name);
  return shown;
}

// The rows of gradients that go by name, one for each composition that has its own.
std::vector<std::string_view> named_rules(NodeRef root) {
  std::vector<std::string_view> texts;
  for (NodeRef node : topological_order({&root, 1})) {
    if (node->op != Op::CustomGrad) continue;
    if (const NamedDerivativeRule* rule = named_gradient_rule(gradient_name(node).name))
      texts.push_back(rule->text);
  }
  return texts;
}

Explained explained(const FunctionRow& row, const ExplainOptions& options) {
  const ChosenDevice device("");
  const FunctionExample example = example_of(row);
  Explained all;
  all.result = type_text(example.result.node());
  for (const Tensor& input : example.inputs) all.inputs.push_back(typed_name(input.node()));
  all.rules = named_rules(example.result.node());
  all.value = show({example.result}, options, device);
  if (!example.gradients.empty()) all.gradient = show(example.gradients, options, device);
  return all;
}

Json shown_json(const Shown& shown) {
  Json kernels = Json::array();
  for (const std::string& name : shown.kernels) kernels.add(name);
  return Json::object()
      .set("graph", shown.text)
      .set("hits", hits_json(ordered_hits(shown.log)))
      .set("kernels", kernels);
}

void write_json(const FunctionRow& row, const Explained& all) {
  Json inputs = Json::array(), rules = Json::array();
  for (const std::string& input : all.inputs) inputs.add(input);
  for (std::string_view rule : all.rules) rules.add(rule);
  write(Json::object()
            .set("function", row.name)
            .set("example", row.call)
            .set("inputs", inputs)
            .set("result", all.result)
            .set("gradient_rules", rules)
            .set("value", shown_json(all.value))
            .set("gradient", all.gradient ? shown_json(*all.gradient) : Json())
            .text() +
        "\n");
}

void write_shown(std::string_view title, const Shown& shown) {
  write(fmt::format("\n{}\n{}", title, indented(shown.text, "  ")));
  const Hits hits = ordered_hits(shown.log);
  write(hits.empty() ? "no rule changes it\n" : "after the rules\n");
  if (!hits.empty()) write_hits(hits);
  write(fmt::format("{} {}: {}\n", shown.kernels.size(),
                    shown.kernels.size() == 1 ? "kernel" : "kernels",
                    fmt::join(shown.kernels, ", ")));
}

}  // namespace

void explain_function(const FunctionRow& row, const ExplainOptions& options) {
  const Explained all = explained(row, options);
  if (options.json) return write_json(row, all);
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), row.call));
  write_fact("inputs", fmt::format("{}", fmt::join(all.inputs, ", ")));
  write_fact("result", all.result);
  for (std::string_view rule : all.rules) write_fact("gradient", rule);
  write_shown("what it becomes", all.value);
  if (all.gradient)
    write_shown("its gradient, for g that of the result", *all.gradient);
  else
    write("\nno gradient flows through it\n");
}

}  // namespace anneal::cli
