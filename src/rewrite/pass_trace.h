// What the compiler does on this thread while a PassTrace lives: every pass with its time, what it
// changed and the rules that fired in it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rewrite/rewriter.h"

namespace anneal {

// How large the thing is that a pass works on. Parts are what the stage counts beside nodes:
// fragments, axes.
struct StateSize {
  int64_t nodes = 0, parts = 0;

  StateSize& operator+=(const StateSize& other) {
    nodes += other.nodes;
    parts += other.parts;
    return *this;
  }
  bool operator==(const StateSize&) const = default;
};

class PassTrace {
 public:
  // Of each pass so many rewrites are kept as text. The innermost trace of a thread has it all.
  explicit PassTrace(size_t keep_events = 0);
  ~PassTrace();
  PassTrace(const PassTrace&) = delete;
  PassTrace& operator=(const PassTrace&) = delete;

  struct Row {
    std::string_view stage, pass, parts;  // what parts are: "axes"; empty: there are none
    int64_t runs = 0, changes = 0;
    double seconds = 0;
    StateSize before = {}, after = {};  // of all runs
    RewriteLog rules;
  };
  // In the order of their first runs. What fires between passes is in a row whose stage is empty.
  const std::vector<Row>& rows() const { return rows_; }
  // Of all passes together.
  std::vector<RewriteLog::Hit> hits() const;

  static PassTrace* current();  // of this thread; null: there is none
  size_t keep_events() const { return keep_events_; }
  Row& row(std::string_view stage, std::string_view pass, std::string_view parts);

 private:
  size_t keep_events_;
  PassTrace* outer_;
  std::vector<Row> rows_;
};

// Where rules report what they do: the pass that runs on this thread, or what is around passes.
// Null: nobody wants to know.
RewriteLog* current_rules();

// While it lives, rules of this thread report here.
class RulesScope {
 public:
  explicit RulesScope(RewriteLog* log);
  ~RulesScope();
  RulesScope(const RulesScope&) = delete;
  RulesScope& operator=(const RulesScope&) = delete;

 private:
  RewriteLog* outer_;
};

}  // namespace anneal
