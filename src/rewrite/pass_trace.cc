#include "rewrite/pass_trace.h"

#include <algorithm>
#include <utility>

namespace anneal {
namespace {

thread_local PassTrace* t_trace = nullptr;
thread_local RewriteLog* t_rules = nullptr;  // of the pass that runs

}  // namespace

PassTrace::PassTrace(size_t keep_events)
    : keep_events_(keep_events), outer_(std::exchange(t_trace, this)) {}
PassTrace::~PassTrace() { t_trace = outer_; }

PassTrace* PassTrace::current() { return t_trace; }

PassTrace::Row& PassTrace::row(std::string_view stage, std::string_view pass,
                               std::string_view parts) {
  auto known = std::ranges::find_if(
      rows_, [&](const Row& row) { return row.stage == stage && row.pass == pass; });
  if (known != rows_.end()) return *known;
  Row fresh;
  fresh.stage = stage;
  fresh.pass = pass;
  fresh.parts = parts;
  fresh.rules = RewriteLog(keep_events_);
  rows_.push_back(std::move(fresh));
  return rows_.back();
}

std::vector<RewriteLog::Hit> PassTrace::hits() const {
  RewriteLog all;
  for (const Row& row : rows_) all.add(row.rules);
  return all.hits();
}

RewriteLog* current_rules() {
  if (t_rules) return t_rules;
  return t_trace ? &t_trace->row("", "between passes", "").rules : nullptr;
}

RulesScope::RulesScope(RewriteLog* log) : outer_(std::exchange(t_rules, log)) {}
RulesScope::~RulesScope() { t_rules = outer_; }

}  // namespace anneal
