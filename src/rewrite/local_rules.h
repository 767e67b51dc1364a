// Rules that ask about more than a node: what else is made of it, on which axes it depends, what
// was decided of it before. One walk over a graph, sources first: each node is offered once, over
// what became of its sources, and what a rule makes of it stays. Named, counted and left out as
// other rules are; what must run to a fixpoint is for the Rewriter.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "rewrite/passes.h"
#include "rewrite/pattern.h"
#include "rewrite/rule_set.h"

namespace anneal {

template <typename Context>
struct LocalRule {
  std::string_view name;
  Pattern pattern;  // of the node as it was
  // `image`: the node over what became of its sources. `unchanged` where it stays.
  NodeRef (*action)(NodeRef node, NodeRef image, Context& context);
};

template <typename Context>
struct LocalRules {
  std::string_view name;  // that of the pass
  std::vector<LocalRule<Context>> rules;
  bool required = false;  // what comes later does not work without them
  // The same op over other sources.
  NodeRef (*rebuild)(NodeRef node, std::span<const NodeRef> sources) = with_sources;

  std::vector<std::string_view> rule_names() const {
    std::vector<std::string_view> names;
    for (const LocalRule<Context>& rule : rules) names.push_back(rule.name);
    return names;
  }
};

// Whether the process leaves a rule out.
bool is_left_out(std::string_view set, std::string_view rule);

template <typename Context>
std::vector<NodeRef> rewrite_once(std::span<const NodeRef> roots, const LocalRules<Context>& set,
                                  std::type_identity_t<Context>& context) {
  std::vector<const LocalRule<Context>*> rules;
  for (const LocalRule<Context>& rule : set.rules)
    if (set.required || !is_left_out(set.name, rule.name)) rules.push_back(&rule);
  RewriteLog* log = current_rules();
  NodeMap<NodeRef> images;
  std::vector<NodeRef> sources;
  auto rewritten = [&](NodeRef node) {
    const OriginScope origin(node->origin);
    sources.clear();
    for (NodeRef source : node->sources()) sources.push_back(*images.find(source));
    NodeRef image = set.rebuild(node, sources);
    for (const LocalRule<Context>* rule : rules) {
      Match match;
      if (!rule->pattern.match(node, match)) continue;
      NodeRef result = rule->action(node, image, context);
      if (!result || result == image) continue;
      if (log) log->record(set.name, rule->name, image, result);
      return result;
    }
    return image;
  };
  for (NodeRef node : topological_order(roots)) images[node] = rewritten(node);
  std::vector<NodeRef> results;
  results.reserve(roots.size());
  for (NodeRef root : roots) results.push_back(*images.find(root));
  return results;
}

}  // namespace anneal
