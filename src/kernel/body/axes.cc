#include "kernel/body/axes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/checked.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/post_order.h"
#include "kernel/plan/axis_form.h"
#include "symbolic/bounds.h"
#include "symbolic/limits.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

// ---- rebuilding a body over other axes

// What stands for an axis: an expression over new axes, which take its place where it was listed.
struct Replacement {
  NodeRef value = nullptr;
  std::vector<Axis> axes;
};
using Replacements = NodeMap<Replacement>;

std::span<const NodeRef> axes_of(NodeRef node) {
  return node->sources().subspan(info(node->op).sources);
}
bool has_axes(NodeRef node) {
  return node->op == Op::Store || node->op == Op::StoreAdd || is_reduce_over(node->op);
}

class Rebuild {
 public:
  Rebuild(const KernelBody& body, const Replacements& replacements)
      : body_(body), replacements_(replacements) {}

  KernelBody run() {
    for (NodeRef node : topological_order(body_.stores)) images_[node] = image(node);
    KernelBody result = body_;
    result.axes.clear();
    result.tile_axes.clear();
    for (NodeRef& store : result.stores) store = images_[store];
    for (NodeRef axis : body_.tile_axes) {
      const Replacement* replacement = replacements_.find(axis);
      if (!replacement) result.tile_axes.push_back(axis);
      for (const Axis& each : replacement ? replacement->axes : std::vector<Axis>())
        if (std::ranges::count(result.tile_axes, each.variable) == 0)
          result.tile_axes.push_back(each.variable);
    }
    std::set<NodeRef> listed;
    for (const Axis& axis : body_.axes) {
      const Replacement* replacement = replacements_.find(axis.variable);
      for (const Axis& each : replacement ? replacement->axes : std::vector{axis})
        if (listed.insert(each.variable).second) result.axes.push_back(each);
    }
    return result;
  }

 private:
  NodeRef image(NodeRef node) {
    if (const Replacement* replacement = replacements_.find(node)) return replacement->value;
    std::vector<NodeRef> sources;
    const size_t plain = has_axes(node) ? info(node->op).sources : node->source_count;
    for (NodeRef source : node->sources().first(plain)) sources.push_back(images_[source]);
    if (!has_axes(node)) return with_sources(node, sources);
    Arg arg = node->arg;
    const bool is_store = !is_reduce_over(node->op);
    int64_t parallel = 0;
    std::span<const NodeRef> axes = axes_of(node);
    for (size_t i = 0; i < axes.size(); ++i) {
      const Replacement* replacement = replacements_.find(axes[i]);
      std::vector<NodeRef> now{axes[i]};
      if (replacement) now.clear();
      if (replacement)
        for (const Axis& axis : replacement->axes) now.push_back(axis.variable);
      for (NodeRef variable : now) {
        if (std::find(sources.begin() + static_cast<long>(plain), sources.end(), variable) !=
            sources.end())
          continue;  // two axes became one
        sources.push_back(variable);
        if (is_store && static_cast<int64_t>(i) < node->arg.axis) ++parallel;
      }
    }
    if (!is_store && sources.size() == plain) return sources[0];  // nothing left to reduce over
    if (is_store) arg = Arg(parallel);
    return current_graph().make(node->op, node->dtype, sources, arg);
  }

  const KernelBody& body_;
  const Replacements& replacements_;
  NodeMap<NodeRef> images_;
};

KernelBody rebuild(const KernelBody& body, const Replacements& replacements) {
  return Rebuild(body, replacements).run();
}

// A variable below `size` that no axis of the body has; its name tells where it comes from.
NodeRef new_variable(const KernelBody& body, NodeRef like, std::string_view suffix, NodeRef size) {
  auto taken = [&](NodeRef variable) {
    return std::any_of(body.axes.begin(), body.axes.end(),
                       [&](const Axis& axis) { return axis.variable == variable; });
  };
  // A variable that can only be 0 would be simplified to 0 where an axis is meant.
  const int64_t last = std::max<int64_t>(1, bounds(size).max - 1);
  const std::string name = fmt::format("{}{}", like->arg.symbol->text(), suffix);
  NodeRef variable = make_variable(name, 0, last);
  for (int i = 2; taken(variable); ++i)
    variable = make_variable(fmt::format("{}{}", name, i), 0, last);
  return variable;
}

std::vector<Limit> limits_of(const KernelBody& body) {
  std::vector<Limit> limits;
  for (const Axis& axis : body.axes) limits.push_back({axis.variable, axis.size});
  return limits;
}

// ---- trivial axes

NodeRef unit_of(NodeRef reduction) {
  const DType dtype = reduction->dtype;
  switch (reduction->op) {
    case Op::SumOver: return make_const(Scalar::of_int(dtype, 0));
    case Op::ProdOver: return make_const(Scalar::of_int(dtype, 1));
    case Op::MaxOver: return make_const(lowest(dtype));
    default: return make_const(highest(dtype));
  }
}

// ---- splitting

struct Split {
  NodeRef axis;
  NodeRef size;
  int64_t inner;
};

size_t count_divisions(const KernelBody& body) {
  size_t count = 0;
  for (NodeRef node : topological_order(body.stores))
    if (node->dtype == DType::Index && (node->op == Op::FloorDiv || node->op == Op::Mod)) ++count;
  return count;
}

// Axes whose loops are told how to run.
bool is_special(const KernelBody& body, NodeRef axis) {
  return std::ranges::count(body.block_axes, axis) > 0 ||
         std::ranges::count(body.masked_ranges, axis, &KernelBody::MaskedRange::axis) > 0;
}

// Splits of the axes of a division's numerator that could make it exact.
void find_splits(const KernelBody& body, NodeRef division, std::vector<Split>& splits) {
  if (!is_static(division->source(1))) return;
  const int64_t divisor = static_value(division->source(1));
  const LinearForm numerator = expand(division->source(0));
  if (divisor <= 1 || numerator.overflow) return;
  for (const LinearForm::Term& term : numerator.terms)
    for (const Axis& axis : body.axes) {
      if (axis.variable != term.base || is_special(body, axis.variable)) continue;
      const int64_t inner = divisor / std::gcd(divisor, term.factor);
      const bool divides =
          inner > 1 && prove_equal(index_mod(axis.size, index_const(inner)), index_const(0));
      const bool known = std::any_of(splits.begin(), splits.end(), [&](const Split& split) {
        return split.axis == term.base && split.inner == inner;
      });
      if (divides && !known && bounds(axis.size).max > inner)
        splits.push_back({axis.variable, axis.size, inner});
    }
}

KernelBody apply(const KernelBody& body, const Split& split) {
  NodeRef inner_size = index_const(split.inner);
  NodeRef outer_size = simplify(index_floor_div(split.size, inner_size));
  NodeRef outer = new_variable(body, split.axis, "o", outer_size);
  NodeRef inner = new_variable(body, split.axis, "i", inner_size);
  Replacements replacements;
  replacements[split.axis] = {index_add(index_mul(outer, inner_size), inner),
                              {{outer, outer_size}, {inner, inner_size}}};
  return drop_trivial_axes(simplify_positions(rebuild(body, replacements)));
}

// ---- merging

// Where an axis is bound: the stores and reductions that list it, and whether it must run in order.
struct Uses {
  std::vector<NodeRef> where;
  bool ordered = false;
};

// The index expressions that something other than an index expression needs.
std::vector<NodeRef> index_roots(const KernelBody& body) {
  std::vector<NodeRef> roots;
  NodeMap<char> seen;
  for (NodeRef node : topological_order(body.stores)) {
    if (node->dtype == DType::Index && node->op != Op::AsIndex) continue;
    const size_t plain = has_axes(node) ? info(node->op).sources : node->source_count;
    if (node->op == Op::Buffer || node->op == Op::Const) continue;
    for (NodeRef source : node->sources().first(plain))
      if (source->dtype == DType::Index && seen.insert(source, 1).second) roots.push_back(source);
  }
  return roots;
}

// Comparisons are one expression, the difference of their sides, as far as merging goes; each side
// by itself would be too strict, but is simple and enough.
bool can_merge(size_t outer, size_t inner, const LinearForm& inner_size,
               const std::vector<AxisForm>& forms) {
  for (const AxisForm& form : forms) {
    if (form.overflow || form.in_rest.contains(outer) || form.in_rest.contains(inner)) return false;
    LinearForm difference = form.slope(outer);
    difference.add(expand(multiply(form.slope(inner), inner_size)), -1);
    if (!is_zero(difference)) return false;
  }
  return true;
}

std::vector<Uses> uses_of(const KernelBody& body, const FreeAxes& free) {
  std::vector<Uses> uses(body.axes.size());
  for (NodeRef node : topological_order(body.stores)) {
    if (!has_axes(node)) continue;
    std::span<const NodeRef> axes = axes_of(node);
    for (size_t i = 0; i < axes.size(); ++i) {
      Uses& use = uses[free.number(axes[i])];
      use.where.push_back(node);
      if (!is_reduce_over(node->op) && static_cast<int64_t>(i) >= node->arg.axis)
        use.ordered = true;
    }
  }
  return uses;
}

std::optional<KernelBody> merge_one_pair(const KernelBody& body) {
  FreeAxes free(body.axes);
  std::vector<AxisForm> forms;
  for (NodeRef root : index_roots(body)) forms.push_back(axis_form(root, free));
  const std::vector<Uses> uses = uses_of(body, free);
  auto is_tile_axis = [&](size_t axis) {
    return std::ranges::count(body.tile_axes, body.axes[axis].variable) > 0;
  };
  for (size_t outer = 0; outer < body.axes.size(); ++outer)
    for (size_t inner = 0; inner < body.axes.size(); ++inner) {
      const bool alike = outer != inner && !uses[outer].ordered && !uses[inner].ordered &&
                         uses[outer].where == uses[inner].where &&
                         is_tile_axis(outer) == is_tile_axis(inner);
      if (!alike) continue;
      NodeRef inner_size = body.axes[inner].size;
      if (!can_merge(outer, inner, expand(inner_size), forms)) continue;
      NodeRef size = simplify(index_mul(body.axes[outer].size, inner_size));
      NodeRef merged = new_variable(body, body.axes[outer].variable, "m", size);
      Replacements replacements;
      replacements[body.axes[outer].variable] = {index_floor_div(merged, inner_size),
                                                 {{merged, size}}};
      replacements[body.axes[inner].variable] = {index_mod(merged, inner_size), {{merged, size}}};
      return simplify_positions(rebuild(body, replacements));
    }
  return std::nullopt;
}

// ---- sharing

// Every axis in or under a node, free or not; or only those that reductions in it bind.
class AllAxes {
 public:
  AllAxes(const FreeAxes& free, bool only_bound) : free_(free), only_bound_(only_bound) {}
  const AxisSet& of(NodeRef node) {
    auto child = [&](NodeRef parent, size_t i) -> NodeRef {
      if (sets_.contains(parent) || i >= parent->source_count) return nullptr;
      return parent->source(i);
    };
    for (NodeRef part : post_order(std::span(&node, 1), child)) {
      if (sets_.contains(part)) continue;
      AxisSet axes;
      const size_t number = free_.number(part);
      if (number < free_.count() && !only_bound_) axes.add(number);
      for (NodeRef source : part->sources()) axes = axes | *sets_.find(source);
      if (is_reduce_over(part->op))
        for (NodeRef axis : axes_of(part)) axes.add(free_.number(axis));
      sets_[part] = axes;
    }
    return *sets_.find(node);
  }

 private:
  const FreeAxes& free_;
  const bool only_bound_;
  NodeMap<AxisSet> sets_;
};

}  // namespace

KernelBody drop_trivial_axes(const KernelBody& body) {
  NodeMap<char> empty;
  Replacements replacements;
  bool any_empty = false;
  for (const Axis& axis : body.axes) {
    const Interval size = bounds(simplify(axis.size));
    if (size.max <= 0) {
      empty[axis.variable] = 1;
      any_empty = true;
    } else if (size.is_point() && size.point() == 1) {
      replacements[axis.variable] = {index_const(0), {}};
    } else if (bounds(axis.variable).is_point()) {
      NodeRef renamed = new_variable(body, axis.variable, "v", axis.size);
      replacements[axis.variable] = {renamed, {{renamed, axis.size}}};
    }
  }
  KernelBody result = body;
  if (any_empty) {
    auto is_empty = [&](NodeRef node) {
      std::span<const NodeRef> axes = axes_of(node);
      return std::any_of(axes.begin(), axes.end(),
                         [&](NodeRef axis) { return empty.contains(axis); });
    };
    std::erase_if(result.stores, is_empty);
    result.stores = clone(result.stores, current_graph(), [&](NodeRef node) -> NodeRef {
      return is_reduce_over(node->op) && is_empty(node) ? unit_of(node) : nullptr;
    });
    std::erase_if(result.axes, [&](const Axis& axis) { return empty.contains(axis.variable); });
  }
  return replacements.size() == 0 ? result : rebuild(result, replacements);
}

KernelBody simplify_positions(const KernelBody& body) {
  KernelBody result = body;
  LimitScope scope(limits_of(body));
  result.stores = simplify(body.stores);
  return result;
}

KernelBody split_axes(const KernelBody& body) {
  KernelBody best = body;
  size_t divisions = count_divisions(best);
  // Each round takes a division away; what helps nothing is not tried twice.
  for (bool improved = divisions > 0; improved;) {
    improved = false;
    std::vector<Split> splits;
    for (NodeRef node : topological_order(best.stores))
      if (node->dtype == DType::Index && (node->op == Op::FloorDiv || node->op == Op::Mod))
        find_splits(best, node, splits);
    for (const Split& split : splits) {
      KernelBody candidate = apply(best, split);
      const size_t now = count_divisions(candidate);
      if (now >= divisions) continue;
      divisions = now;
      best = std::move(candidate);
      improved = true;
      break;
    }
  }
  return best;
}

KernelBody merge_axes(const KernelBody& body) {
  KernelBody result = body;
  while (std::optional<KernelBody> merged = merge_one_pair(result)) result = *std::move(merged);
  return result;
}

KernelBody share_axes(const KernelBody& body) {
  FreeAxes free(body.axes);
  AllAxes all(free, false), bound(free, true);
  NodeMap<NodeRef> images;
  auto size_of = [&](NodeRef axis) { return body.axes[free.number(axis)].size; };
  std::vector<NodeRef> shared;  // axes that reductions were given, in the order of the first one
  for (NodeRef node : topological_order(body.stores)) {
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(images[source]);
    AxisSet own;
    if (is_reduce_over(node->op))
      for (NodeRef axis : axes_of(node)) own.add(free.number(axis));
    // One that binds an axis twice, inside itself, keeps what it has.
    const bool special =
        std::ranges::any_of(own.empty() ? std::span<const NodeRef>() : axes_of(node),
                            [&](NodeRef axis) { return is_special(body, axis); });
    if (own.empty() || special || !(own & bound.of(sources[0])).empty()) {
      images[node] = with_sources(node, sources);
      continue;
    }
    // Its own axes are taken, too: one that keeps its name must not meet one that got it.
    AxisSet taken = all.of(sources[0]) | own;
    NodeMap<NodeRef> renamed;
    for (size_t i = 1; i < sources.size(); ++i) {
      if (std::find(shared.begin(), shared.end(), sources[i]) != shared.end()) continue;
      auto fits = std::find_if(shared.begin(), shared.end(), [&](NodeRef axis) {
        return size_of(axis) == size_of(sources[i]) && !taken.contains(free.number(axis));
      });
      NodeRef axis = fits == shared.end() ? sources[i] : *fits;
      if (fits == shared.end()) shared.push_back(axis);
      taken.add(free.number(axis));
      renamed[sources[i]] = axis;
      sources[i] = axis;
    }
    auto rename = [&](NodeRef part) -> NodeRef {
      if (NodeRef* axis = renamed.find(part)) return *axis;
      return (own & free.of(part)).empty() ? part : nullptr;
    };
    sources[0] = clone(std::span(&sources[0], 1), current_graph(), rename)[0];
    images[node] = with_sources(node, sources);
  }
  KernelBody result = body;
  AxisSet used;
  for (NodeRef& store : result.stores) {
    store = images[store];
    used = used | all.of(store);
  }
  std::erase_if(result.axes,
                [&](const Axis& axis) { return !used.contains(free.number(axis.variable)); });
  return result;
}

}  // namespace anneal
