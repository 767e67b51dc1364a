#include "rewrite/passes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/error.h>

#include "base/debug.h"
#include "base/os/mutex.h"
#include "rewrite/local_rules.h"

namespace anneal {
namespace {

PassRequests& requests() {
  static auto& requests = *new PassRequests;  // lives as long as the process
  return requests;
}

// Programs may be compiled in several threads.
struct Times {
  Mutex mutex;
  std::vector<PassTime> rows;
};

Times& times() {
  static auto& times = *new Times;
  return times;
}

void add_time(std::string_view stage, std::string_view pass, bool changed, double seconds) {
  const Lock lock(times().mutex);
  std::vector<PassTime>& rows = times().rows;
  auto row = std::ranges::find_if(
      rows, [&](const PassTime& each) { return each.stage == stage && each.pass == pass; });
  if (row == rows.end()) row = rows.insert(rows.end(), {stage, pass});
  ++row->runs;
  row->changes += changed ? 1 : 0;
  row->seconds += seconds;
}

}  // namespace

const PassRequests& pass_requests() { return requests(); }

void set_pass_requests(PassRequests wanted) { requests() = std::move(wanted); }

std::vector<PassTime> pass_times() {
  const Lock lock(times().mutex);
  return times().rows;
}

bool is_disabled(std::string_view name, std::span<const std::string> disabled) {
  return std::ranges::count(disabled, name) > 0 ||
         std::ranges::count(pass_requests().disabled, name) > 0;
}

// ---- one run of a pass

bool is_left_out(std::string_view set, std::string_view rule) {
  const std::vector<std::string>& disabled = pass_requests().disabled;
  return !disabled.empty() && std::ranges::count(disabled, fmt::format("{}/{}", set, rule)) > 0;
}

PassRun::PassRun(std::string_view stage, std::string_view pass, std::string_view parts)
    : stage_(stage),
      pass_(pass),
      parts_(parts),
      watched_(pass_requests().time || pass_requests().dump || PassTrace::current() ||
               debugs(Debug::Passes)),
      dumped_(pass_requests().dump &&
              (pass_requests().dump_after == pass || pass_requests().dump_after == "all")),
      verified_(pass_requests().verify) {}

void PassRun::begin() {
  if (!watched_) return;
  if (PassTrace* trace = PassTrace::current())
    rules_ = RewriteLog(trace->row(stage_, pass_, parts_).rules.room());
  if (PassTrace::current() || debugs(Debug::Passes)) scope_.emplace(&rules_);
  begin_ = std::chrono::steady_clock::now();
}

void PassRun::end() {
  if (!watched_) return;
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  scope_.reset();
}

void PassRun::finish(const Outcome& outcome) {
  if (pass_requests().time) add_time(stage_, pass_, outcome.changed, seconds_);
  if (PassTrace* trace = PassTrace::current()) {
    PassTrace::Row& row = trace->row(stage_, pass_, parts_);
    ++row.runs;
    row.changes += outcome.changed ? 1 : 0;
    row.seconds += seconds_;
    row.before += outcome.before;
    row.after += outcome.after;
    row.rules.add(rules_);
  }
  if (debugs(Debug::Passes)) write_line(outcome);
  if (dumped_) pass_requests().dump(stage_, pass_, outcome.text);
  if (!outcome.problem.empty())
    throw InternalError(fmt::format("after pass {} of {}: {}", pass_, stage_, outcome.problem));
}

void PassRun::write_line(const Outcome& outcome) const {
  std::string rules;
  for (const RewriteLog::Hit& hit : rules_.hits())
    rules += fmt::format("{}{}/{} {}", rules.empty() ? "; " : ", ", hit.set, hit.rule, hit.count);
  write_debug(fmt::format(
      "pass {:<12} {:<20} {:>9.3f} ms  {}{}\n", stage_, pass_, seconds_ * 1e3,
      outcome.changed ? change_text(outcome.before, outcome.after, parts_) : "unchanged", rules));
}

std::string change_text(const StateSize& before, const StateSize& after, std::string_view parts) {
  auto one = [](std::string_view what, int64_t from, int64_t to) {
    return from == to ? fmt::format("{} {}", from, what)
                      : fmt::format("{} -> {} {}", from, to, what);
  };
  std::vector<std::string> counts;
  if (before.nodes > 0 || after.nodes > 0)
    counts.push_back(one("nodes", before.nodes, after.nodes));
  if (before.parts > 0 || after.parts > 0) counts.push_back(one(parts, before.parts, after.parts));
  return fmt::format("{}", fmt::join(counts, ", "));
}

}  // namespace anneal
