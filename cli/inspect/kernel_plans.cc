#include "cli/inspect/kernel_plans.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output.h"
#include "codegen/target_kernels.h"

namespace anneal::cli {
namespace {

constexpr size_t kShown = 4;  // plans, the planner's own among them

std::string micro(double seconds) { return fmt::format("{:.1f} us", seconds * 1e6); }

std::string taken_text(const PlanChoice& choice) {
  std::string text;
  if (choice.nanoseconds > 0)
    text += fmt::format("{} expected, ", micro(choice.nanoseconds * 1e-9));
  if (choice.registers > 0) text += fmt::format("{} registers, ", choice.registers);
  return text + fmt::format("{} of fast memory a cell", bytes_text(choice.memory_bytes));
}

// Null: what is recorded is the planner's own, or none of these.
const PlanChoice* choice_of(const PartPlans& plans) {
  const auto found = std::ranges::find(plans.choices, plans.recorded->plan, &PlanChoice::plan);
  return found == plans.choices.end() ? nullptr : &*found;
}

}  // namespace

PartPlans plans_of(const KernelPart& part, const Capabilities& capabilities, TunedPlans* tuned) {
  PartPlans plans{plan_choices_for(part.body, {.capabilities = capabilities}), std::nullopt};
  if (tuned) plans.recorded = tuned->find(part.body);
  return plans;
}

std::string plans_text(const PartPlans& plans) {
  std::string text;
  for (size_t i = 0; i < std::min(plans.choices.size(), kShown); ++i) {
    const PlanChoice& choice = plans.choices[i];
    text += fmt::format("{}{}\n{}\n", i == 0 ? "" : "  or ", choice.summary,
                        paint(Colour::Dim, "     " + taken_text(choice)));
  }
  if (plans.choices.size() > kShown)
    text += fmt::format("  and {} more\n", plans.choices.size() - kShown);
  if (!plans.recorded) return text;
  const PlanChoice* choice = choice_of(plans);
  text += fmt::format("  tuned: {}\n     {} measured, {} with the planner's own\n",
                      choice ? choice->summary : "the planner's own does best",
                      micro(plans.recorded->seconds), micro(plans.recorded->planner_seconds));
  return text;
}

Json plans_json(const PartPlans& plans) {
  Json choices = Json::array();
  for (const PlanChoice& choice : plans.choices)
    choices.add(Json::object()
                    .set("plan", choice.summary)
                    .set("expected_ns", choice.nanoseconds > 0 ? Json(choice.nanoseconds) : Json())
                    .set("registers", choice.registers > 0 ? Json(choice.registers) : Json())
                    .set("memory_bytes", choice.memory_bytes));
  Json json = Json::object().set("choices", choices);
  if (!plans.recorded) return json.set("tuned", Json());
  const PlanChoice* choice = choice_of(plans);
  return json.set("tuned", Json::object()
                               .set("plan", choice ? Json(choice->summary) : Json())
                               .set("measured_ns", plans.recorded->seconds * 1e9)
                               .set("planner_ns", plans.recorded->planner_seconds * 1e9));
}

}  // namespace anneal::cli
