// Applies rule sets to graphs until nothing changes. Iterative and memoising: each node is
// rewritten once, a 100,000-deep chain is no problem, and an unchanged graph comes back as the same
// handles.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/rule_set.h"

namespace anneal {

// Rules and sets to leave out, by name: "identities" or "identities/mul-one".
using DisabledRules = std::vector<std::string>;

// What happened: counts always, texts only when asked for.
class RewriteLog {
 public:
  struct Hit {
    std::string_view set, rule;
    int64_t count = 0;
  };
  struct Event {
    std::string_view set, rule;
    std::string before, after;  // text IR
    std::string origin;
  };

  explicit RewriteLog(size_t keep_events = 0) : keep_events_(keep_events) {}

  void record(std::string_view set, std::string_view rule, NodeRef before, NodeRef after);
  void add(const RewriteLog& other);  // its counts, and its texts as long as there is room

  const std::vector<Hit>& hits() const { return hits_; }         // in the order of the first hit
  const std::vector<Event>& events() const { return events_; }   // the first `keep_events`
  size_t room() const { return keep_events_ - events_.size(); }  // for more of them

 private:
  Hit& hit_of(std::string_view set, std::string_view rule);

  size_t keep_events_;
  std::vector<Hit> hits_;
  std::vector<Event> events_;
};

enum class Direction {
  BottomUp,  // sources first; what a rule makes is rewritten again, to a fixpoint
  TopDown,   // a node first, then the sources of what became of it
};

// Rewritten sources may fit each other no longer, where what was equal became equal only in value.
// Changes them so that they do; answers whether it changed any.
using Repair = bool (*)(std::vector<NodeRef>& sources);

class Rewriter {
 public:
  // `facts`: what actions may read from their matches; it outlives the rewriter.
  explicit Rewriter(std::vector<const RuleSet*> sets, Direction direction = Direction::BottomUp,
                    const DisabledRules& disabled = {}, RewriteLog* log = nullptr,
                    Repair repair = nullptr, const Facts& facts = {});
  ~Rewriter();

  // Rewrites within the current graph. What was rewritten before is remembered between calls, as
  // long as the graph keeps its nodes.
  std::vector<NodeRef> run(std::span<const NodeRef> roots);
  NodeRef run(NodeRef root);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anneal
