#include "kernel/plan/workgroup_memory.h"

#include <algorithm>
#include <set>

#include "kernel/plan/cost.h"
#include "kernel/plan/plan_check.h"

namespace anneal {
namespace {

// Every loop of a plan whose lanes are threads.
std::vector<AxisLoop> loops_of(const CellPlan& plan) {
  std::vector<AxisLoop> loops;
  for (const GridAxis& axis : plan.grid) loops.push_back({axis.axis, axis.tile});
  for (const StorePlan& stores : plan.stores)
    loops.insert(loops.end(), stores.loops.begin(), stores.loops.end());
  return loops;
}

// Threads take elements of these.
AxisSet axes_of_threads(const CellPlan& plan) {
  AxisSet axes;
  for (const AxisLoop& loop : loops_of(plan))
    if (loop.tile.lanes > 1) axes.add(loop.axis);
  return axes;
}
AxisSet axes_of_threads(const WorkgroupElements& plan) {
  AxisSet axes;
  for (size_t axis : plan.axes) axes.add(axis);
  return axes;
}
AxisSet axes_of_threads(const TransposeTile& plan) {
  AxisSet axes;
  axes.add(plan.along);
  axes.add(plan.across);
  return axes;
}
AxisSet axes_of_threads(const WorkgroupProduct& plan) {
  AxisSet axes;
  for (const WorkgroupSide* side : {&plan.rows, &plan.columns})
    for (size_t axis : side->axes) axes.add(axis);
  return axes;
}

int lanes_of(std::span<const AxisLoop> loops) {
  int lanes = 1;
  for (const AxisLoop& loop : loops) lanes = std::max(lanes, loop.tile.lanes);
  return lanes;
}

int threads_of(const KernelPlan& all, const CellPlan& plan) {
  int threads = lanes_of(loops_of(plan));
  for (const ReductionPlan& each : all.reductions)
    threads = std::max(threads, lanes_of(each.alone));
  return threads;
}
int threads_of(const KernelPlan&, const WorkgroupElements& plan) { return plan.threads; }
int threads_of(const KernelPlan&, const TransposeTile&) { return TransposeTile::kThreads; }
int threads_of(const KernelPlan&, const WorkgroupProduct& plan) { return plan.threads(); }

class Reckoning {
 public:
  Reckoning(const KernelPlan& plan, Analysis& analysis) : plan_(plan), analysis_(analysis) {
    std::visit(
        [&](const auto& kind) {
          if constexpr (requires { axes_of_threads(kind); }) {
            lane_axes_ = axes_of_threads(kind);
            threads_ = threads_of(plan, kind);
          }
        },
        plan.kind);
    find_combined();
  }

  WorkgroupMemory memory(bool units, bool own_memory, int subgroup) {
    const std::vector<LocalBuffer> locals = cell_memory(plan_, analysis_);
    const auto* product = std::get_if<WorkgroupProduct>(&plan_.kind);
    const bool halves = units && product && !product->matrices.empty();
    int64_t all = int64_t{16} * threads_;
    for (const LocalBuffer& local : locals) all += local.elements * bytes_of(local.dtype, kWord);
    const bool apart = own_memory && all > kRoomOfGroup;
    WorkgroupMemory memory;
    for (size_t i = 0; i < locals.size(); ++i) {
      const LocalBuffer& local = locals[i];
      const int64_t each = bytes_of(local.dtype, halves && local.dtype == DType::F16 ? 2 : kWord);
      const bool even = local.elements > 0 && local.elements % threads_ == 0;
      if (apart && even && has_own_elements(i))
        memory.of_thread += local.elements / threads_ * each;
      else
        memory.of_group += (local.elements * each + 15) / 16 * 16;
    }
    const int parts = threads_ / threads_in_registers(threads_, subgroup,
                                                      std::ranges::all_of(combined_, can_exchange));
    if (parts > 1)
      for (const DType dtype : combined_)
        memory.of_group += (parts * bytes_of(dtype, kWord) + 15) / 16 * 16;
    return memory;
  }

 private:
  static constexpr int64_t kWord = 4;
  static int64_t bytes_of(DType dtype, int64_t least) {
    return std::max(least, static_cast<int64_t>(byte_size(dtype)));
  }

  // Threads share a reduction that nothing around it gives them elements of. Sources come first,
  // but what is around a reduction is what needs it: the last ones decide first.
  void find_combined() {
    AxisSet lanes = lane_axes_;
    const std::vector<NodeRef>& reductions = analysis_.reductions();
    for (size_t i = reductions.size(); i-- > 0;) {
      NodeRef reduction = reductions[i];
      if (is_summed_by_product(reduction)) continue;
      const ReductionPlan& own = plan_.reduction(reduction);
      if (!(analysis_.free(reduction) & lanes).empty() || lanes_of(own.alone) == 1) continue;
      combined_.insert(reduction->dtype);
      for (const AxisLoop& loop : own.alone)
        if (loop.tile.lanes > 1) lanes.add(loop.axis);
    }
  }
  bool is_summed_by_product(NodeRef reduction) const {
    const auto* product = std::get_if<WorkgroupProduct>(&plan_.kind);
    return product && std::ranges::count(product->sums, reduction) > 0;
  }

  // Whether threads touch elements of a tile that no other thread does.
  bool has_own_elements(size_t number) {
    const auto* cell = std::get_if<CellPlan>(&plan_.kind);
    if (!cell || threads_ == 1) return false;
    if (plan_.row_lanes) return true;  // rows are neighbours in it
    NodeRef tile = analysis_.body().tiles[number];
    return std::ranges::all_of(topological_order(analysis_.body().stores), [&](NodeRef node) {
      const bool access = node->op == Op::Load || node->op == Op::Store || node->op == Op::StoreAdd;
      return !access || node->source(0) != tile || is_own_place(*cell, node->source(1));
    });
  }
  // A thread's elements are as far apart as there are threads.
  bool is_own_place(const CellPlan& cell, NodeRef position) {
    const AxisForm& form = analysis_.form(position);
    if (form.overflow || !form.in_rest.empty() || !is_zero(form.rest) || form.terms.size() != 1)
      return false;
    const LinearForm slope = form.terms[0].slope;
    if (!is_constant(slope) || slope.constant != 1) return false;
    std::vector<AxisLoop> loops = loops_of(cell);
    for (const ReductionPlan& each : plan_.reductions)
      loops.insert(loops.end(), each.alone.begin(), each.alone.end());
    bool any = false;
    for (const AxisLoop& loop : loops) {
      if (loop.axis != form.terms[0].axis) continue;
      if (loop.tile.lanes == 1 || loop.tile.neighbours > 1) return false;
      any = true;
    }
    return any;
  }

  const KernelPlan& plan_;
  Analysis& analysis_;
  AxisSet lane_axes_;
  int threads_ = 1;
  std::set<DType> combined_;
};

}  // namespace

WorkgroupMemory workgroup_memory(const KernelPlan& plan, Analysis& analysis, bool units,
                                 bool own_memory, int subgroup) {
  return Reckoning(plan, analysis).memory(units, own_memory, subgroup);
}

bool fits_workgroup(const KernelPlan& plan, Analysis& analysis, const Capabilities& capabilities,
                    bool own_memory) {
  const WorkgroupMemory memory =
      workgroup_memory(plan, analysis, capabilities.matrix_element_bytes == 2, own_memory,
                       capabilities.fixed_subgroup_threads);
  return memory.of_group <= capabilities.workgroup_bytes &&
         memory.of_thread <= capabilities.private_bytes;
}

}  // namespace anneal
