#include "cli/inspect/pass_options.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "cli/failure.h"
#include "codegen/pipeline.h"

namespace anneal::cli {
namespace {

std::vector<std::string_view> views_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

void check_disabled(const std::vector<std::string>& disabled) {
  const std::vector<std::string> names = names_to_disable();
  const std::vector<PassRow> rows = pipeline();
  for (const std::string& name : disabled) {
    if (std::ranges::count(names, name) > 0) continue;
    if (std::ranges::count(rows, name, &PassRow::name) > 0)
      throw UsageError(fmt::format("pass '{}' cannot be left out", name),
                       "kernels are wrong without it");
    fail_unknown("pass", name, views_of(names));
  }
}

// Passes that the runner knows: not rule sets, nor choices of plans.
void check_dumped(const std::string& wanted) {
  std::vector<std::string> names{"all"};
  for (const PassRow& row : pipeline())
    if (row.stage != "simplify" && row.stage != "plan" && row.stage != "memory")
      names.emplace_back(row.name);
  if (!wanted.empty() && std::ranges::count(names, wanted) == 0)
    fail_unknown("pass", wanted, views_of(names));
}

void dump(std::string_view stage, std::string_view pass, std::string_view text) {
  fmt::print(stderr, "// after {}, {}{}\n{}", stage, pass, text.empty() ? ": unchanged" : "", text);
}

}  // namespace

void use_pass_options(const PassOptions& options) {
  check_disabled(options.disabled);
  check_dumped(options.dump_after);
  PassRequests requests;
  requests.disabled = options.disabled;
  requests.dump_after = options.dump_after;
  if (!options.dump_after.empty()) requests.dump = dump;
  requests.time = options.time;
  set_pass_requests(std::move(requests));
}

void write_pass_times(const PassOptions& options) {
  if (!options.time) return;
  double all = 0;
  fmt::print(stderr, "{:<12} {:<20} {:>6} {:>8} {:>9}\n", "stage", "pass", "runs", "changed", "ms");
  for (const PassTime& row : pass_times()) {
    fmt::print(stderr, "{:<12} {:<20} {:>6} {:>8} {:>9.3f}\n", row.stage, row.pass, row.runs,
               row.changes, row.seconds * 1e3);
    all += row.seconds;
  }
  fmt::print(stderr, "{:<12} {:<20} {:>6} {:>8} {:>9.3f}\n", "all", "", "", "", all * 1e3);
}

}  // namespace anneal::cli
