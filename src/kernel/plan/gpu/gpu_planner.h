// Plans for lanes that are the threads of a workgroup: elements one by one, products, transposes,
// and rows, where a group for each row is better.
#pragma once

#include <optional>

#include "kernel/plan/body_planner.h"
#include "kernel/plan/workgroup_memory.h"
#include "target/workgroup_tiles.h"

namespace anneal {

// What of a plan is given instead of chosen; 0: it is chosen.
struct WorkgroupPins {
  enum class Form : uint8_t { Any, Product, Transpose, Elements, Rows };
  Form form = Form::Any;
  const WorkgroupTile* tile = nullptr;  // of a product
  int64_t depth = 0, blocks = 0;        // its k tile, and how many a round has
  int matrices_at_once = 0;             // where units multiply
  int threads = 0;                      // of elements or rows
  int neighbours = 0, copies = 0;       // of elements
  int most_accesses = 0;                // elements of rows that a thread takes at once
};

class GpuPlanner : public BodyPlanner {
 public:
  GpuPlanner(Analysis& analysis, const Capabilities& capabilities,
             const std::vector<std::string>& disabled);

  KernelPlan plan(bool row_lanes) override { return make(row_lanes, {}); }
  std::vector<PlanCandidate> candidates(bool row_lanes) override;
  std::string why_not(const KernelPlan& plan, bool row_lanes) override;

 private:
  KernelPlan::Kind choose(bool row_lanes) override;
  bool has_vectors() const override { return false; }
  double scattered_access() const override;
  int sums_worthwhile(const Region& region) const override;
  int most_copies(size_t nodes) const override;
  void vectorize_accesses(const Region& region, size_t axis, Tile& tile) const override;
  void choose_blocks(size_t vector_axis, CellPlan& plan) override;
  int lanes_along_rows(size_t vector_axis) override;
  void choose_row_lanes(GridAxis& rows) override;

  KernelPlan make(bool row_lanes, const WorkgroupPins& pins);
  bool may_be(WorkgroupPins::Form form) const;
  std::optional<WorkgroupElements> plan_elements();
  std::optional<TransposeTile> plan_transpose();

  // ---- plan_product.cc

  std::optional<WorkgroupProduct> plan_workgroup_product();
  std::vector<MaskBound> mask_bounds(const WorkgroupProduct& plan);
  std::vector<MatrixFactors> matrix_factors(NodeRef term, const Operands& operands,
                                            std::vector<WorkgroupOperand>& staged) const;
  void choose_copying(const WorkgroupProduct& plan, const Region& region,
                      WorkgroupOperand& operand);
  bool choose_matrix_memory(WorkgroupProduct& plan) const;
  const WorkgroupTile* cheapest_tile(WorkgroupProduct& plan,
                                     std::span<const WorkgroupTile> shapes) const;
  bool fits_tile(WorkgroupProduct& plan, const WorkgroupTile& shape) const;
  double steps_of_tile(const WorkgroupProduct& plan, const WorkgroupTile& shape) const;
  int64_t staged_bytes(const WorkgroupProduct& plan, int64_t depth) const;
  bool choose_k_tile(WorkgroupProduct& plan) const;

  // ---- candidates.cc

  std::vector<WorkgroupPins> variants(const KernelPlan& own) const;
  bool has_room(const KernelPlan& plan) const {
    return fits_workgroup(plan, analysis_, capabilities_, enabled("place-locals"));
  }
  // Of the plan that was made last.
  double nanoseconds(const KernelPlan& plan);
  // Without what every launch takes.
  double nanoseconds_of(const WorkgroupProduct& plan);
  double nanoseconds_of(const WorkgroupElements& plan);
  double nanoseconds_of(const TransposeTile& plan);
  double nanoseconds_of(const CellPlan& plan);
  double bytes_of_memory();
  double bytes_per_nanosecond() const;
  double flop_per_nanosecond() const;

  WorkgroupPins pins_;  // of the plan that is being made
};

}  // namespace anneal
