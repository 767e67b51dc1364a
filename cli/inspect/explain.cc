#include "cli/inspect/explain.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/inspect/functions.h"
#include "cli/inspect/programs.h"
#include "codegen/pipeline.h"
#include "rewrite/passes.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

void check_disabled(const std::vector<std::string>& disabled) {
  std::vector<std::string> names;
  for (const RuleSet* set : rule_sets()) {
    names.emplace_back(set->name());
    for (const Rule& rule : set->rules())
      names.push_back(fmt::format("{}/{}", set->name(), rule.name));
  }
  for (const std::string& name : disabled)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail_unknown("rule set or rule", name,
                   std::vector<std::string_view>(names.begin(), names.end()));
}

// Wherever the rules run.
void leave_out(const std::vector<std::string>& disabled) {
  PassRequests requests = pass_requests();
  requests.disabled.insert(requests.disabled.end(), disabled.begin(), disabled.end());
  set_pass_requests(std::move(requests));
}

}  // namespace

void explain(const ExplainOptions& options) {
  check_disabled(options.disabled);
  leave_out(options.disabled);
  if (const std::optional<Op> op = parse_op(options.target)) return explain_op(*op, options);
  if (const models::ProgramRow* row = models::find_program(options.target))
    return explain_program(*row, options);
  if (const FunctionRow* row = find_function(options.target))
    return explain_function(*row, options);
  std::vector<std::string_view> names = program_names();
  for (const FunctionRow& row : functions()) names.push_back(row.name);
  for (int i = 0; i < kTensorOpCount; ++i) names.push_back(name(static_cast<Op>(i)));
  fail_unknown("op, function or program", options.target, names);
}

}  // namespace anneal::cli
