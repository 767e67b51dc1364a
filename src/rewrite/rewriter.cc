#include "rewrite/rewriter.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "ir/print.h"
#include "rewrite/pass_trace.h"
#include "rewrite/passes.h"

namespace anneal {
namespace {

// A rule in one order of its commutative parts, with what can be checked without a match.
struct Candidate {
  std::string_view set, rule;
  Pattern pattern;
  Rule::Action action;
  std::array<OpSet, 2> source_ops;  // of the first two sources; all ops where the pattern is open
};

OpSet all_ops() {
  OpSet ops;
  for (int i = 0; i < kOpCount; ++i) ops.add(static_cast<Op>(i));
  return ops;
}

// A rule that keeps answering new nodes for one node would run for ever.
constexpr int kMaxFirings = 10000;

}  // namespace

RewriteLog::Hit& RewriteLog::hit_of(std::string_view set, std::string_view rule) {
  auto hit = std::ranges::find_if(
      hits_, [&](const Hit& known) { return known.set == set && known.rule == rule; });
  return hit == hits_.end() ? hits_.emplace_back(set, rule) : *hit;
}

void RewriteLog::record(std::string_view set, std::string_view rule, NodeRef before,
                        NodeRef after) {
  ++hit_of(set, rule).count;
  if (room() > 0)
    events_.push_back({set, rule, print(before), print(after),
                       before->origin ? to_text(*before->origin) : std::string()});
}

void RewriteLog::add(const RewriteLog& other) {
  for (const Hit& hit : other.hits_) hit_of(hit.set, hit.rule).count += hit.count;
  const size_t count = std::min(room(), other.events_.size());
  events_.insert(events_.end(), other.events_.begin(),
                 other.events_.begin() + static_cast<ptrdiff_t>(count));
}

struct Rewriter::State {
  struct Frame {
    NodeRef node;       // what was asked for
    NodeRef current;    // what has become of it so far
    uint32_t next = 0;  // the source to look at next
    int firings = 0;
  };

  std::vector<Candidate> candidates;
  std::array<std::vector<uint16_t>, kOpCount> by_op;
  Direction direction;
  RewriteLog* log;
  Repair repair;
  Facts facts;
  NodeMap<NodeRef> done;  // the node it became; null while in progress
  uint64_t generation = 0;
  std::vector<Frame> stack;
  std::vector<NodeRef> sources;

  void add(const RuleSet& set, const Rule& rule) {
    for (Pattern& order : rule.pattern.orders()) {
      std::array<OpSet, 2> source_ops{all_ops(), all_ops()};
      for (size_t i = 0; i < std::min<size_t>(2, order.sources().size()); ++i)
        if (!order.sources()[i].matches_any_op()) source_ops[i] = order.sources()[i].ops();
      candidates.push_back({set.name(), rule.name, order, rule.action, source_ops});
      for (int i = 0; i < kOpCount; ++i)
        if (order.matches_any_op() || order.ops().contains(static_cast<Op>(i)))
          by_op[static_cast<size_t>(i)].push_back(static_cast<uint16_t>(candidates.size() - 1));
    }
  }

  // What the first rule that fires makes of the node, or null.
  NodeRef fire(NodeRef node) {
    size_t count = node->source_count;
    for (uint16_t index : by_op[static_cast<size_t>(node->op)]) {
      const Candidate& candidate = candidates[index];
      if (count > 0 && !candidate.source_ops[0].contains(node->source(0)->op)) continue;
      if (count > 1 && !candidate.source_ops[1].contains(node->source(1)->op)) continue;
      Match match(facts);
      if (!candidate.pattern.match(node, match)) continue;
      OriginScope origin(node->origin);
      NodeRef result = candidate.action(match);
      if (!result || result == node) continue;
      if (log) log->record(candidate.set, candidate.rule, node, result);
      if (RewriteLog* pass = current_rules(); pass && pass != log)
        pass->record(candidate.set, candidate.rule, node, result);
      return result;
    }
    return nullptr;
  }

  void check_firings(Frame& frame) {
    if (++frame.firings > kMaxFirings)
      throw InternalError(fmt::format("rewriting does not end at {}", print(frame.current)));
  }

  void push(NodeRef node) {
    if (done.insert(node, nullptr).second) {
      stack.push_back({node, node});
    }
  }

  // The image of a source, or null after pushing it.
  NodeRef image(NodeRef source) {
    NodeRef* entry = done.find(source);
    if (entry && *entry) return *entry;
    if (entry) throw InternalError("rewriting made a node depend on itself: " + print(source));
    push(source);
    return nullptr;
  }

  void finish(NodeRef result) {
    done[stack.back().node] = result;
    done[result] = result;
    stack.pop_back();
  }

  bool sources_ready(Frame& frame) {
    // A frame may move when a source is pushed: read what is needed first.
    NodeRef node = frame.current;
    while (frame.next < node->source_count) {
      if (!image(node->source(frame.next))) return false;
      ++frame.next;
    }
    return true;
  }

  NodeRef rebuilt(NodeRef node) {
    sources.clear();
    for (NodeRef source : node->sources()) sources.push_back(*done.find(source));
    if (std::equal(sources.begin(), sources.end(), node->sources().begin())) return node;
    OriginScope origin(node->origin);
    std::string error;
    NodeRef made = current_graph().try_make(node->op, node->dtype, sources, node->arg, &error);
    if (!made && repair && repair(sources)) return with_sources(node, sources);
    if (!made) throw InternalError(error);
    return made;
  }

  // One step of the top frame: descend, or rewrite, or finish.
  void step_bottom_up() {
    Frame& frame = stack.back();
    if (!sources_ready(frame)) return;
    NodeRef node = rebuilt(frame.current);
    if (NodeRef* known = done.find(node); known && *known) return finish(*known);
    NodeRef next = fire(node);
    if (!next) return finish(node);
    // The new node may be new all the way down: rewrite it before answering.
    if (NodeRef* known = done.find(next); known && *known) return finish(*known);
    check_firings(frame);
    frame.current = next;
    frame.next = 0;
  }

  void step_top_down() {
    Frame& frame = stack.back();
    if (frame.next == 0) {
      while (NodeRef next = fire(frame.current)) {
        check_firings(frame);
        frame.current = next;
      }
    }
    if (!sources_ready(frame)) return;
    finish(rebuilt(frame.current));
  }

  NodeRef run(NodeRef root) {
    if (NodeRef* known = done.find(root)) return *known;
    push(root);
    while (!stack.empty()) direction == Direction::BottomUp ? step_bottom_up() : step_top_down();
    return *done.find(root);
  }
};

Rewriter::Rewriter(std::vector<const RuleSet*> sets, Direction direction,
                   const DisabledRules& disabled, RewriteLog* log, Repair repair,
                   const Facts& facts)
    : state_(std::make_unique<State>()) {
  state_->direction = direction;
  state_->log = log;
  state_->repair = repair;
  state_->facts = facts;
  for (const RuleSet* set : sets) {
    if (is_disabled(set->name(), disabled)) continue;
    for (const Rule& rule : set->rules())
      if (!is_disabled(fmt::format("{}/{}", set->name(), rule.name), disabled))
        state_->add(*set, rule);
  }
}

Rewriter::~Rewriter() = default;

std::vector<NodeRef> Rewriter::run(std::span<const NodeRef> roots) {
  uint64_t generation = current_graph().generation();
  if (generation != state_->generation) state_->done = NodeMap<NodeRef>();
  state_->generation = generation;
  std::vector<NodeRef> result;
  result.reserve(roots.size());
  for (NodeRef root : roots) {
    if (!current_graph().owns(root))
      throw InternalError("rewriting a node of another graph: " + print(root));
    result.push_back(state_->run(root));
  }
  return result;
}

NodeRef Rewriter::run(NodeRef root) { return run(std::span(&root, 1))[0]; }

}  // namespace anneal
