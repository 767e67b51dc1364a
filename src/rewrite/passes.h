// A stage of the compiler as a table of named passes, and the one runner for all of them: it leaves
// passes out, times them, verifies after each and shows what they made. What is asked of the runner
// holds for the whole process, as programs are compiled from many places. Must not know what a pass
// works on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/pass_trace.h"

namespace anneal {

struct PassRequests {
  // Passes and rule sets to leave out, by name; of a rule set also "set/rule".
  std::vector<std::string> disabled = {};
  std::string dump_after = {};  // a pass, or "all"
  // Takes what a pass made, as text; empty where it changed nothing.
  std::function<void(std::string_view stage, std::string_view pass, std::string_view text)> dump =
      nullptr;
  bool time = false;
  bool verify = kVerifyAlways;

#ifdef NDEBUG
  static constexpr bool kVerifyAlways = false;
#else
  static constexpr bool kVerifyAlways = true;
#endif
};
const PassRequests& pass_requests();
// Before anything is compiled: whoever compiles meanwhile may see either.
void set_pass_requests(PassRequests requests);

// What a pass took so far, where it is asked for. In the order of the first runs.
struct PassTime {
  std::string_view stage, pass;
  int64_t runs = 0, changes = 0;
  double seconds = 0;
};
std::vector<PassTime> pass_times();

// Whether the name is in the list, or in the list of the process.
bool is_disabled(std::string_view name, std::span<const std::string> disabled);

template <typename State, typename Options>
struct Pass {
  std::string_view name;
  void (*run)(State&, const Options&);
  // Whether it has something to do here; null: always.
  bool (*when)(const State&, const Options&) = nullptr;
  std::string_view family = {};              // leaves this one out, and others
  bool required = false;                     // what comes later does not work without it
  std::vector<std::string_view> rules = {};  // local rules that it is made of: local_rules.h
  std::vector<std::string_view> parts = {};  // what it does that can be left out by itself
};

// `Options` has a list `disabled`.
template <typename State, typename Options>
struct PassTable {
  std::string_view stage, parts;  // what StateSize counts beside nodes
  std::vector<Pass<State, Options>> passes;
  std::string (*text)(const State&);
  std::string (*verify)(const State&);    // the first problem, or empty
  uint64_t (*fingerprint)(const State&);  // differs, nearly always, where something changed
  StateSize (*size)(const State&);
};

// One run of a pass, and what is asked for of it, by the process, the thread's trace or
// ANNEAL_DEBUG. Nothing is computed that nobody wants.
class PassRun {
 public:
  PassRun(std::string_view stage, std::string_view pass, std::string_view parts = "");
  bool wants_sizes() const { return watched_; }  // and whether something changed
  bool wants_text(bool changed) const { return dumped_ && changed; }
  bool wants_verification() const { return verified_; }

  void begin();  // the pass itself
  void end();
  struct Outcome {
    bool changed = false;
    StateSize before = {}, after = {};
    std::string text = {}, problem = {};  // as wanted
  };
  void finish(const Outcome& outcome);

 private:
  void write_line(const Outcome& outcome) const;

  std::string_view stage_, pass_, parts_;
  bool watched_, dumped_, verified_;
  std::chrono::steady_clock::time_point begin_ = {};
  double seconds_ = 0;
  RewriteLog rules_;
  std::optional<RulesScope> scope_ = std::nullopt;
};

// "452 -> 435 nodes, 12 fragments"
std::string change_text(const StateSize& before, const StateSize& after, std::string_view parts);

template <typename State, typename Options>
void run_passes(const PassTable<State, Options>& table, State& state, const Options& options) {
  for (const Pass<State, Options>& pass : table.passes) {
    const bool left_out = is_disabled(pass.name, options.disabled) ||
                          (!pass.family.empty() && is_disabled(pass.family, options.disabled));
    if ((left_out && !pass.required) || (pass.when && !pass.when(state, options))) continue;
    PassRun run(table.stage, pass.name, table.parts);
    PassRun::Outcome outcome;
    uint64_t before = 0;
    if (run.wants_sizes()) {
      before = table.fingerprint(state);
      outcome.before = table.size(state);
    }
    run.begin();
    pass.run(state, options);
    run.end();
    if (run.wants_sizes()) {
      outcome.changed = table.fingerprint(state) != before;
      outcome.after = table.size(state);
    }
    if (run.wants_text(outcome.changed)) outcome.text = table.text(state);
    if (run.wants_verification()) outcome.problem = table.verify(state);
    run.finish(outcome);
  }
}

// A row of a table, for people.
struct PassRow {
  std::string_view stage, name, family;
  bool required = false;
  std::vector<std::string_view> rules = {};  // that can be left out by themselves: "pass/rule"
  std::vector<std::string_view> parts = {};  // that can, by their own names
};
template <typename State, typename Options>
void add_rows(const PassTable<State, Options>& table, std::vector<PassRow>& rows) {
  for (const Pass<State, Options>& pass : table.passes)
    rows.push_back({table.stage, pass.name, pass.family, pass.required, pass.rules, pass.parts});
}

}  // namespace anneal
