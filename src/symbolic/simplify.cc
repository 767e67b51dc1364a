#include "symbolic/simplify.h"

#include <algorithm>
#include <memory>

#include "rewrite/rewriter.h"
#include "symbolic/rules.h"

namespace anneal {
namespace rules {

std::vector<NodeRef> flatten(Op op, NodeRef node) {
  std::vector<NodeRef> parts, stack{node};
  while (!stack.empty()) {
    NodeRef top = stack.back();
    stack.pop_back();
    if (top->op == op) {
      stack.push_back(top->source(1));
      stack.push_back(top->source(0));
    } else {
      parts.push_back(top);
    }
  }
  return parts;
}

NodeRef join(Op op, std::vector<NodeRef> parts) {
  std::sort(parts.begin(), parts.end(), [](NodeRef a, NodeRef b) { return a->key < b->key; });
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  NodeRef joined = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) joined = make(op, {joined, parts[i]});
  return joined;
}

}  // namespace rules

namespace {

// What was simplified is remembered as long as the graph (Graph::memory) and the limits in scope
// are the same. A few tables are kept, since scopes are left and entered again.
struct Memory {
  Key limits;
  std::unique_ptr<Rewriter> rewriter;
};
struct Memories {
  std::vector<Memory> latest_first;
};

Rewriter& rewriter() {
  constexpr size_t kTables = 4;
  std::vector<Memory>& memories = current_graph().memory<Memories>().latest_first;
  const Key limits = limits_key();
  auto known = std::ranges::find(memories, limits, &Memory::limits);
  if (known == memories.end()) {
    if (memories.size() == kTables) memories.pop_back();
    memories.insert(memories.begin(), {limits, std::make_unique<Rewriter>(index_rules())});
  } else {
    std::rotate(memories.begin(), known, known + 1);
  }
  return *memories.front().rewriter;
}

}  // namespace

std::vector<const RuleSet*> index_rules() {
  return {&index_sum_rules(), &index_division_rules(), &index_comparison_rules(),
          &index_condition_rules()};
}

NodeRef simplify(NodeRef expression) { return rewriter().run(expression); }

std::vector<NodeRef> simplify(std::span<const NodeRef> expressions) {
  return rewriter().run(expressions);
}

}  // namespace anneal
