#include "kernel/emit/emit_workgroup.h"

#include "kernel/emit/workgroup_product.h"

namespace anneal {
namespace {

class ElementsEmitter : WorkgroupEmitter {
 public:
  ElementsEmitter(Emitter& emitter, Analysis& analysis, const WorkgroupElements& plan)
      : WorkgroupEmitter(emitter, analysis, plan.threads), plan_(plan) {}

  NodeRef run() {
    const int64_t stretch = int64_t{plan_.threads} * plan_.neighbours,
                  cell = stretch * plan_.copies;
    NodeRef count = count_of(analysis_, plan_.axes);
    const ValueId in_cell = code_.mul(lane_, code_.index(plan_.neighbours));
    const ValueId of_cell = code_.index(cell);
    ValueId first = code_.add(code_.mul(code_.cell(), of_cell), in_cell);
    std::vector<int64_t> distances;
    for (int copy = 0; copy < plan_.copies; ++copy)
      for (int i = 0; i < plan_.neighbours; ++i) distances.push_back(copy * stretch + i);
    const Elements elements{first, distances, plan_.neighbours};
    const std::vector<Assigned> assigned = digits(plan_.axes, elements);
    Emitter::Assignment assignment(emitter_, assigned, existing(elements, count, cell));
    emitter_.stores(plan_.stores, {});
    return ceil_div(count, cell);
  }

 private:
  const WorkgroupElements& plan_;
};

}  // namespace

NodeRef emit_elements(Emitter& emitter, Analysis& analysis, const WorkgroupElements& plan) {
  return ElementsEmitter(emitter, analysis, plan).run();
}

NodeRef emit_group_product(Emitter& emitter, Analysis& analysis, const WorkgroupProduct& plan) {
  if (!plan.matrices.empty()) return emit_matrix_product(emitter, analysis, plan);
  return WorkgroupProductEmitter(emitter, analysis, plan).run();
}

}  // namespace anneal
