#include "schedule/fragments/pick_terms.h"

#include <algorithm>
#include <optional>

#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "rewrite/local_rules.h"

namespace anneal {
namespace {

bool depends(NodeRef root, NodeRef variable) {
  return std::ranges::count(topological_order({&root, 1}), variable) > 0;
}

bool is_zero(NodeRef node) {
  if (!node->is_const()) return false;
  return is_float(node->dtype) ? node->scalar().as_double() == 0 : node->arg.bits == 0;
}

class Picker {
 public:
  Picker(Fragment& fragment, NodeRef axis, NodeRef size)
      : fragment_(fragment), axis_(axis), size_(size) {}

  // The sum of the terms over the axis, where only one of them can be other than 0.
  std::optional<NodeRef> sum_of(NodeRef term) {
    switch (term->op) {
      case Op::Where: return is_zero(term->source(2)) ? chosen(term) : std::nullopt;
      case Op::Neg: {
        std::optional<NodeRef> sum = sum_of(term->source(0));
        if (sum) sum = make(Op::Neg, {*sum});
        return sum;
      }
      default: return std::nullopt;
    }
  }

 private:
  std::optional<NodeRef> chosen(NodeRef where) {
    const std::optional<Choice> choice = choice_in(where->source(0));
    if (!choice) return std::nullopt;
    NodeRef place = make(Op::AsIndex, {choice->number});
    NodeRef exists =
        make(Op::And, {make(Op::Le, {index_const(0), place}), make(Op::Lt, {place, size_})});
    NodeMap<NodeRef> by;
    by[axis_] = place;
    by[choice->equality] = make_const(DType::Bool, 1);
    // What is read there must be there.
    for (NodeRef node : topological_order({&where, 1})) {
      if (node->op != Op::Load || !depends(node, axis_)) continue;
      if (std::ranges::count(fragment_.writes, schedule_buffer_of(node->source(0))) > 0)
        return std::nullopt;
      const NodeRef parts[] = {node->source(1), node->source(2)};
      const std::vector<NodeRef> there = substitute(parts, by);
      const bool always = there[1]->is_const();
      NodeRef readable = always ? exists : make(Op::And, {exists, there[1]});
      by[node] = make(Op::Load, {node->source(0), there[0], readable});
    }
    NodeRef kept = where->source(0) == choice->equality ? where->source(1) : where;
    NodeRef value = substitute({&kept, 1}, by)[0];
    return make(Op::Where, {exists, value, where->source(2)});
  }

  // The number that the axis must equal for a condition to hold.
  struct Choice {
    NodeRef equality, number;
  };
  std::optional<Choice> choice_in(NodeRef condition) {
    if (condition->op == Op::And) {
      const std::optional<Choice> choice = choice_in(condition->source(0));
      return choice ? choice : choice_in(condition->source(1));
    }
    if (condition->op != Op::Eq) return std::nullopt;
    for (size_t side : {0, 1}) {
      NodeRef counted = condition->source(side), number = condition->source(1 - side);
      const bool counts = counted->op == Op::Cast && counted->source(0) == axis_ &&
                          is_int(counted->dtype) && byte_size(counted->dtype) >= 4;
      if (counts && !depends(number, axis_)) return Choice{condition, number};
    }
    return std::nullopt;
  }

  Fragment& fragment_;
  NodeRef axis_, size_;
};

// The reduction over one axis less, or as it is.
NodeRef with_picked_terms(Fragment& fragment, NodeRef sum) {
  for (size_t i = 1; i < sum->source_count; ++i) {
    NodeRef axis = sum->source(i);
    NodeRef size = std::ranges::find(fragment.axes, axis, &Axis::variable)->size;
    std::optional<NodeRef> picked = Picker(fragment, axis, size).sum_of(sum->source(0));
    if (!picked) continue;
    std::vector<NodeRef> sources{*picked};
    for (size_t k = 1; k < sum->source_count; ++k)
      if (k != i) sources.push_back(sum->source(k));
    return sources.size() == 1 ? *picked : make(Op::SumOver, sources);
  }
  return sum;
}

struct Picking {
  Fragment& fragment;
  bool any = false;
};

const LocalRules<Picking> kRules{"pick-terms",
                                 {{"only-term", any_of({Op::SumOver}),
                                   [](NodeRef, NodeRef image, Picking& picking) {
                                     if (image->op != Op::SumOver) return unchanged;
                                     NodeRef picked = with_picked_terms(picking.fragment, image);
                                     picking.any = picking.any || picked != image;
                                     return picked;
                                   }}},
                                 false,
                                 rebuilt};

}  // namespace

std::vector<std::string_view> pick_terms_rules() { return kRules.rule_names(); }

void pick_terms(Rangified& program) {
  for (Fragment& fragment : program.fragments) {
    if (!fragment.tiles.empty()) continue;
    Picking picking{fragment};
    for (std::vector<NodeRef>& phase : fragment.phases)
      phase = rewrite_once(phase, kRules, picking);
    if (picking.any) fragment.refresh();
  }
}

}  // namespace anneal
