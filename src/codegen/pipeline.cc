#include "codegen/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/gpu/passes.h"
#include "kernel/lower.h"
#include "schedule/graph/conv_rules.h"
#include "schedule/passes.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

constexpr bool kRequired = true;

// Kernels know no marks of gradients.
bool is_required(const RuleSet& set) { return &set == &kStripRules; }

}  // namespace

const std::vector<const RuleSet*>& rule_sets() {
  static const auto& sets = *new std::vector<const RuleSet*>([] {
    std::vector<const RuleSet*> all{&kConvRules};
    all.insert(all.end(), program_rules().begin(), program_rules().end());
    return all;
  }());
  return sets;
}

std::vector<PassRow> pipeline() {
  std::vector<PassRow> rows{{"algorithms", kConvRules.name(), {}, false}};
  for (const RuleSet* set : program_rules())
    rows.push_back({"simplify", set->name(), {}, is_required(*set)});
  add_rows(graph_passes(), rows);
  add_rows(fusion_passes(), rows);
  add_rows(fragment_passes(), rows);
  rows.push_back({"memory", "memory-plan", {}, kRequired});
  add_rows(body_passes(), rows);
  for (const std::string_view choice : {"vectorise", "unroll", "tile", "stage"})
    rows.push_back({"plan", choice, {}, false});
  add_rows(gpu_passes(), rows);
  return rows;
}

std::vector<std::string> names_to_disable() {
  std::vector<std::string> names;
  auto add = [&](std::string name) {
    if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  };
  for (const PassRow& row : pipeline()) {
    if (!row.required) add(std::string(row.name));
    for (std::string_view rule : row.rules)
      if (!row.required) add(fmt::format("{}/{}", row.name, rule));
    if (!row.family.empty()) add(std::string(row.family));
    for (std::string_view part : row.parts) add(std::string(part));
  }
  for (const RuleSet* set : rule_sets())
    for (const Rule& rule : set->rules())
      if (!is_required(*set)) add(fmt::format("{}/{}", set->name(), rule.name));
  return names;
}

}  // namespace anneal
