#include "schedule/fragments/flatten_axes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "symbolic/bounds.h"
#include "symbolic/polynomial.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

class Flattener {
 public:
  explicit Flattener(Fragment& fragment) : fragment_(fragment) {}

  void run() {
    for (const std::vector<NodeRef>& phase : fragment_.phases)
      for (NodeRef store : phase)
        if (store->op != Op::Store ||
            store->arg.axis != static_cast<int64_t>(store_axes(store).size()))
          return;
    for (bool again = true; again;) {
      read();
      again = false;
      for (size_t outer = 0; outer < fragment_.axes.size() && !again; ++outer)
        for (size_t inner = 0; inner < fragment_.axes.size() && !again; ++inner)
          if (outer != inner && are_one(fragment_.axes[outer], fragment_.axes[inner])) {
            join(outer, inner);
            again = true;
          }
    }
  }

 private:
  // What the fragment does with its axes: the numbers it makes of them, and who lists which.
  void read() {
    numbers_.clear();
    lists_.clear();
    NodeMap<char> seen;
    for (const std::vector<NodeRef>& phase : fragment_.phases)
      for (NodeRef node : topological_order(phase)) {
        if (node->dtype == DType::Index) continue;
        const size_t listed = first_listed(node);
        if (listed < node->source_count) lists_.push_back(node->sources().subspan(listed));
        for (NodeRef source : node->sources().first(listed))
          if (source->dtype == DType::Index && seen.insert(source, 1).second)
            numbers_.push_back(expand(source));
      }
  }

  static size_t first_listed(NodeRef node) {
    if (node->op == Op::Store) return 4;
    return is_reduce_over(node->op) ? 1 : node->source_count;
  }

  static bool mentions(NodeRef expression, NodeRef variable) {
    if (expression == variable) return true;
    if (expression->dtype != DType::Index || expression->op == Op::AsIndex) return false;
    return std::ranges::any_of(expression->sources(),
                               [&](NodeRef source) { return mentions(source, variable); });
  }

  // Whether every number is made of outer * size of inner + inner.
  bool are_one(const Axis& outer, const Axis& inner) const {
    if (!is_static(inner.size) || static_value(inner.size) < 2) return false;
    const int64_t size = static_value(inner.size);
    bool any = false;
    for (std::span<const NodeRef> list : lists_) {
      const auto has = [&](const Axis& axis) { return std::ranges::count(list, axis.variable); };
      if (has(outer) != has(inner)) return false;
      any = any || has(outer) > 0;
    }
    if (!any) return false;
    for (const LinearForm& number : numbers_) {
      if (number.overflow) return false;
      int64_t of_outer = 0, of_inner = 0;
      for (const LinearForm::Term& term : number.terms) {
        if (term.base == outer.variable)
          of_outer += term.factor;
        else if (term.base == inner.variable)
          of_inner += term.factor;
        else if (mentions(term.base, outer.variable) || mentions(term.base, inner.variable))
          return false;
      }
      if (of_outer % size != 0 || of_outer / size != of_inner) return false;
    }
    return true;
  }

  void join(size_t outer, size_t inner) {
    const Axis a = fragment_.axes[outer], b = fragment_.axes[inner];
    NodeRef size = simplify(index_mul(a.size, b.size));
    NodeRef whole = make_variable(fmt::format("{}.{}", name_of(a), name_of(b)), 0,
                                  std::max<int64_t>(1, bounds(size).max) - 1);
    // With inner = whole - outer * size, outer is gone from every number.
    NodeMap<NodeRef> by;
    by[b.variable] = index_add(whole, index_mul(a.variable, index_mul(b.size, index_const(-1))));
    for (std::vector<NodeRef>& phase : fragment_.phases)
      phase = listed_anew(phase, a, b, whole, by);
    fragment_.axes[outer] = {whole, size};
    fragment_.axes.erase(fragment_.axes.begin() + static_cast<std::ptrdiff_t>(inner));
  }

  static std::string name_of(const Axis& axis) {
    return std::string(axis.variable->arg.symbol->text());
  }

  std::vector<NodeRef> listed_anew(std::span<const NodeRef> phase, const Axis& a, const Axis& b,
                                   NodeRef whole, NodeMap<NodeRef> images) {
    for (NodeRef node : topological_order(phase)) {
      if (images.contains(node)) continue;
      std::vector<NodeRef> sources;
      const size_t listed = first_listed(node);
      for (size_t i = 0; i < node->source_count; ++i) {
        NodeRef source = node->source(i);
        if (i < listed)
          sources.push_back(*images.find(source));
        else if (source != b.variable)
          sources.push_back(source == a.variable ? whole : source);
      }
      images[node] = node->op == Op::Store
                         ? make(Op::Store, sources, Arg(static_cast<int64_t>(sources.size() - 4)))
                         : rebuilt(node, sources);
    }
    std::vector<NodeRef> result;
    for (NodeRef store : phase) result.push_back(*images.find(store));
    return result;
  }

  Fragment& fragment_;
  std::vector<LinearForm> numbers_;
  std::vector<std::span<const NodeRef>> lists_;
};

}  // namespace

void flatten_axes(Rangified& program) {
  for (Fragment& fragment : program.fragments)
    if (!fragment.phases.empty() && fragment.tiles.empty()) Flattener(fragment).run();
}

}  // namespace anneal
