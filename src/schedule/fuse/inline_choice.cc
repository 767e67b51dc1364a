#include "schedule/fuse/inline_choice.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/index.h"
#include "rewrite/passes.h"
#include "schedule/cost.h"
#include "schedule/graph/products.h"
#include "target/questions.h"
#include "target/workgroup_tiles.h"

namespace anneal {
namespace {

// Where groups of threads have a tile of a product each, an operand is made anew for every one of
// them. That is for nothing where it is a value of memory, little changed.
constexpr double kWidthOfTile = kLargestTile.columns();

// Elements a value is made of, behind movement: those that any of it lets through.
double elements_behind(NodeRef node) {
  double elements = element_estimate(*node->shape);
  for (; is_movement(node->op); node = node->source(0))
    elements = std::min(elements, element_estimate(*node->source(0)->shape));
  return elements;
}

bool refuse(StoredValue* why, UnfusedReason reason) {
  why->reason = reason;
  return false;
}

// What is stored, if anything is, is the narrow value.
bool widens(NodeRef node) {
  return node->op == Op::Cast && byte_size(node->source(0)->dtype) < byte_size(node->dtype);
}

// Widening a stored value costs nothing but the load.
bool is_cast_of_storage(NodeRef node) {
  return node->op == Op::Cast && node->source(0)->op == Op::Buffer;
}

bool is_true(NodeRef condition) { return condition->is_const() && condition->arg.bits == 1; }

}  // namespace

InlineChoice::InlineChoice(ValueUses& values, const ScheduleOptions& options)
    : values_(values),
      inline_(!is_disabled("inline", options.disabled)),
      groups_make_operands_(makes_operands_in_workgroups(options.capabilities)),
      cost_([this](NodeRef node) { return is_stored(node); },
            [this](NodeRef node) { return values_.users(node); },
            options.capabilities.flops_per_byte) {}

void InlineChoice::estimate() {
  for (NodeRef node : values_.order()) {
    if (node->dtype == DType::Index) continue;
    ValueState& s = values_.state(node);
    s.carries = is_reduce(node->op);
    s.expands = expands(node);
    if (s.carries || node->op == Op::Buffer || s.forced) continue;
    const double elements = element_estimate(*node->shape);
    for (NodeRef source : node->tensors())
      s.carries =
          s.carries || (source->dtype != DType::Index && values_.state(source).carries &&
                        values_.users(source) == 1 && element_estimate(*source->shape) >= elements);
  }
}

bool InlineChoice::expands(NodeRef node) {
  const double elements = element_estimate(*node->shape);
  if (is_reduce(node->op)) {
    NodeRef product = node->source(0);
    return is_product(node) && product->op == Op::Mul &&
           is_expansion(elements,
                        elements_behind(product->source(0)) + elements_behind(product->source(1)));
  }
  return std::ranges::any_of(node->tensors(), [&](NodeRef source) {
    return source->dtype != DType::Index && values_.state(source).expands &&
           element_estimate(*source->shape) == elements;
  });
}

// Whether it surely has memory, or will: see value_stays_inline().
bool InlineChoice::is_stored(NodeRef node) {
  const ValueState& s = values_.state(node);
  return node->op == Op::Buffer || is_reduce(node->op) || s.forced || s.root >= 0 ||
         (s.carries && values_.users(node) > 1);
}

bool InlineChoice::stays_inline(NodeRef node, const ValueState& s, StoredValue* why) {
  const bool many = s.uses.size() > kMostUses;
  if (is_movement(node->op) || node->op == Op::Const || node->op == Op::Iota ||
      node->op == Op::Assign)
    return !many || node->op != Op::Pad || refuse(why, UnfusedReason::Uses);
  if (!inline_ && !is_cast_of_storage(node)) return refuse(why, UnfusedReason::Disabled);
  if (widens(node)) return !many || refuse(why, UnfusedReason::Uses);
  return is_reduce(node->op) ? reduce_stays_inline(node, s, why) : value_stays_inline(node, s, why);
}

bool InlineChoice::value_stays_inline(NodeRef node, const ValueState& s, StoredValue* why) {
  double again = 0;
  const double elements = element_estimate(*node->shape);
  for (const ValueUse& use : s.uses) again += values_.evaluations(use);
  if (node->op == Op::Gather && is_deep(s)) return refuse(why, UnfusedReason::Length);
  if (groups_make_operands_ && times_made_for_products(s, elements) >= kTimesOfOperand &&
      !cost_.is_near_memory(node))
    return refuse(why, UnfusedReason::Product);
  if (s.uses.size() == 1 && again <= elements * kTimesOfOneUse) return true;
  if (cost_.needs_no_memory(node)) return true;
  const double computed = cost_.of_element(node);
  double stored =
      elements * computed + (elements + again) * cost_.of_memory(node->dtype) + kLaunchCost;
  // Uses in one kernel go over the same rows while they are near; a store would take it apart.
  const bool one_kernel =
      std::ranges::all_of(s.uses, [&](const ValueUse& use) { return use.root == s.uses[0].root; });
  const double near = one_kernel ? kSplitsKernel : 1;
  stored *= near;
  if (s.carries && s.uses.size() > 1) return refuse(why, UnfusedReason::Reduce);
  if (s.uses.size() <= kFewUses && computed < kModerate && cost_.is_few_operations(node))
    return true;
  if (s.uses.size() > kMostUses) return refuse(why, UnfusedReason::Uses);
  why->cost = {again * computed, stored};
  if (!why->cost.decided()) return true;
  // Of a narrow dtype it is cheap to keep: as wide as f32 it might have been computed again.
  const double narrow = cost_.of_memory(DType::F32) - cost_.of_memory(node->dtype);
  const double as_wide = stored + near * (elements + again) * narrow;
  return refuse(why, why->cost.again <= as_wide ? UnfusedReason::Dtype : UnfusedReason::Reuse);
}

// Whether it is wanted at places that are found through many others.
bool InlineChoice::is_deep(const ValueState& s) {
  return std::ranges::any_of(s.uses, [&](const ValueUse& use) {
    return std::ranges::any_of(use.coordinates->dims(), [&](NodeRef coordinate) {
      return values_.variables_of(coordinate).places >= kMostPlaces;
    });
  });
}

// How often each element would be made as an operand of products, by groups of threads.
double InlineChoice::times_made_for_products(const ValueState& s, double elements) {
  double times = 0;
  for (const ValueUse& use : s.uses) {
    const KernelRoot& in = values_.root(use.root);
    if (!in.is_product) continue;
    bool summed = false;
    double others = 1;
    for (const Axis& axis : in.all) {
      const bool of_result = std::ranges::count(in.space, axis.variable, &Axis::variable) > 0;
      if (values_.depends(*use.coordinates, axis.variable))
        summed = summed || !of_result;
      else if (of_result)
        others *= size_estimate(axis.size);
    }
    if (summed && others > 1)
      times +=
          values_.evaluations(use) / std::max(1.0, elements) * std::max(1.0, others / kWidthOfTile);
  }
  return times;
}

bool InlineChoice::reduce_stays_inline(NodeRef node, const ValueState& s, StoredValue* why) {
  const double work = element_estimate(*node->source(0)->shape);
  const double elements = element_estimate(*node->shape);
  if (s.uses.size() > 1) return refuse(why, UnfusedReason::Reduce);
  const ValueUse& use = s.uses[0];
  KernelRoot& in = values_.root(use.root);
  if (!is_true(use.valid)) return refuse(why, UnfusedReason::Shape);
  std::vector<NodeRef> rows;
  for (NodeRef coordinate : use.coordinates->dims()) {
    if (is_static(coordinate)) continue;
    const KernelLoop* loop = values_.loop_of(coordinate);
    if (!loop || std::ranges::count(rows, coordinate) > 0) return refuse(why, UnfusedReason::Shape);
    if (loop->depth >= kMostNested) return refuse(why, UnfusedReason::Length);
    rows.push_back(coordinate);
  }
  if (values_.evaluations(use) < elements)
    return refuse(why, UnfusedReason::Shape);  // some are not wanted
  const bool all_space =
      rows.size() == in.space.size() && std::ranges::all_of(rows, [&](NodeRef row) {
        return std::ranges::count(in.space, row, &Axis::variable) > 0;
      });
  const bool product = is_product(node);
  if (product && !(all_space && !in.is_product && !in.has_rows && in.all.size() == in.space.size()))
    return refuse(why, UnfusedReason::Reduce);
  if (in.is_product) return refuse(why, UnfusedReason::Reduce);
  if (all_space) return true;
  if (elements < kEnoughRows && work > kLittleWorkOfReduce) return refuse(why, UnfusedReason::Size);
  // Rows that are never stored need their statistics for themselves.
  if (values_.state(node->source(0)).expands) return refuse(why, UnfusedReason::Size);
  in.has_rows = true;
  return true;
}

}  // namespace anneal
