// The tables of what can be left out, and the ways to run a program.
#include "graph_runs.h"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "body_interpreter.h"
#include "schedule_runner.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

// So that a few hundred elements are many.
constexpr double kEager = 4096;

std::vector<Toggle> toggles_of(std::vector<std::string> names) {
  std::vector<Toggle> toggles{{}, {{}, kEager}};
  for (const std::string& name : names) toggles.push_back({{name}, kEager});
  toggles.push_back({std::move(names), kEager});
  return toggles;
}

// An exception is a failure like any other.
std::string guarded(const std::function<std::string()>& check) {
  try {
    return check();
  } catch (const std::exception& error) {
    return fmt::format("throws: {}", error.what());
  }
}

std::string bindings_text(const SizeBinding& binding) {
  std::string text;
  for (const auto& [variable, value] : binding)
    text += fmt::format(" {} = {}", variable->arg.symbol->text(), value);
  return text.empty() ? "" : fmt::format(" (with{})", text);
}

ScheduleOptions options_of(const Toggle& toggle) {
  ScheduleOptions options;
  options.disabled = toggle.names;
  options.eagerness = toggle.eagerness;
  options.capabilities.tiles = true;
  return options;
}

std::string problem_of_bodies(const Schedule& schedule) {
  GraphScope scope(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        if (const std::string problem = verify(part.body); !problem.empty())
          return fmt::format("{}\n{}", problem, to_text(part.body));
  return "";
}

}  // namespace

std::string Toggle::text() const {
  return fmt::format("without {}{}",
                     names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")),
                     eagerness > 1 ? ", eagerly" : "");
}

const std::vector<Toggle>& schedule_toggles() {
  static const std::vector<Toggle> toggles =
      toggles_of({"inline", "in-place", "tile", "group", "split-reduce", "merge"});
  return toggles;
}

const std::vector<Toggle>& lower_toggles() {
  static const std::vector<Toggle> toggles =
      toggles_of({"merge-axes", "vectorise", "unroll", "tile", "stage"});
  return toggles;
}

GraphRuns::GraphRuns(std::span<const NodeRef> roots) : roots_(roots.begin(), roots.end()) {
  failure_ = guarded([&]() -> std::string {
    simplified_ = simplify_program(roots_);
    for (const SizeBinding& binding : size_bindings(roots_)) {
      GraphContents contents(binding);
      Expectation expected = expect(roots_, contents);
      cases_.push_back({binding, std::move(contents), std::move(expected)});
    }
    return "";
  });
}

std::string GraphRuns::check_bodies(const Toggle& toggle) const {
  if (!failure_.empty()) return failure_;
  return guarded([&]() -> std::string {
    const Schedule schedule = schedule_program(simplified_, options_of(toggle));
    if (std::string problem = problem_of_bodies(schedule); !problem.empty()) return problem;
    for (Case& each : cases_) {
      const std::string text =
          run_and_compare(roots_, schedule, each.contents, each.expected,
                          [](const KernelPart& part, std::span<Value* const> values,
                             const auto& variable) { run_body(part.body, values, variable); });
      if (!text.empty()) return text + bindings_text(each.binding);
    }
    return "";
  });
}

}  // namespace anneal
