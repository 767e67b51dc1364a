// Whether a value is computed where it is used, or stored: by what each costs.
#pragma once

#include "schedule/fuse/recompute_cost.h"
#include "schedule/fuse/value_uses.h"

namespace anneal {

class InlineChoice {
 public:
  InlineChoice(ValueUses& values, const ScheduleOptions& options);

  void estimate();  // before the walk: what each value is made of
  // Of a value with all its uses; else `why` has the reason.
  bool stays_inline(NodeRef node, const ValueState& s, StoredValue* why);
  double cost_of_element(NodeRef node) { return cost_.of_element(node); }

 private:
  bool expands(NodeRef node);
  // Whether it surely has memory, or will: see value_stays_inline().
  bool is_stored(NodeRef node);
  bool value_stays_inline(NodeRef node, const ValueState& s, StoredValue* why);
  bool reduce_stays_inline(NodeRef node, const ValueState& s, StoredValue* why);
  // Whether it is wanted at places that are found through many others.
  bool is_deep(const ValueState& s);
  // How often each element would be made as an operand of products, by groups of threads.
  double times_made_for_products(const ValueState& s, double elements);

  ValueUses& values_;
  bool inline_;
  bool groups_make_operands_;
  RecomputeCost cost_;
};

}  // namespace anneal
