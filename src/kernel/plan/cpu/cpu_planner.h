// Plans for lanes that are parts of a vector register: cells that cores share, blocks that stay in
// their caches.
#pragma once

#include <optional>

#include "kernel/plan/body_planner.h"

namespace anneal {

// What of a product is given instead of chosen; the rest follows.
struct ProductPins {
  int row_copies = 0, column_copies = 0;
  int64_t depth = 0;
  std::vector<int64_t> blocks = {};         // of the grid's axes
  int64_t most_rows = 0, most_columns = 0;  // of a block, instead of those
};

class CpuPlanner : public BodyPlanner {
 public:
  CpuPlanner(Analysis& analysis, const Capabilities& capabilities,
             const std::vector<std::string>& disabled);

  std::vector<PlanCandidate> candidates(bool row_lanes) override;
  std::string why_not(const KernelPlan& plan, bool row_lanes) override;

 private:
  KernelPlan::Kind choose(bool row_lanes) override;
  bool has_vectors() const override { return true; }
  double scattered_access() const override;
  int sums_worthwhile(const Region& region) const override;
  size_t zipped_axis(NodeRef store, size_t axis) override;
  void turn_blocks(size_t vector_axis, CellPlan& plan) override;
  void choose_blocks(size_t vector_axis, CellPlan& plan) override;

  struct Work {
    double nanoseconds = 0, bytes = 0;
  };
  Work work_of(size_t vector_axis);
  void choose_turned_blocks(size_t vector_axis, int64_t cells, CellPlan& plan);

  // Where the body is a product, and it pays to treat it as one.
  std::optional<ProductPlan> plan_product(const ProductPins& pins = {});
  // Sums of long columns, for which rows are read from end to end: a product without rows.
  std::optional<ProductPlan> plan_column_reduction();
  void choose_product_tile(ProductPlan& plan, const ProductPins& pins) const;
  void choose_depth(ProductPlan& plan, const ProductPins& pins) const;
  bool has_sums_in_memory(const ProductPlan& plan) const;
  void choose_product_blocks(ProductPlan& plan, const Region& region, const ProductPins& pins);
  void choose_staged(ProductPlan& plan, const Region& region, const Operands& operands);
  void choose_flat(ProductPlan& plan, const Operands& operands);
  void choose_together(ProductPlan& plan);
  int64_t block_side(ProductPlan& plan, const ProductSide& side, int64_t most) const;

  // ---- candidates.cc

  static ProductPins pins_of(const ProductPlan& plan);
  std::string why_not_legal(const ProductPlan& plan);
  std::vector<ProductPins> product_variants(const ProductPlan& chosen);
  bool has_free_blocks() const;
  int64_t most_block(const GridAxis& axis) const;
  void add_products(std::vector<PlanCandidate>& all, bool row_lanes);
  void add_cells(std::vector<PlanCandidate>& all, bool row_lanes);
  // On all cores.
  double nanoseconds(const KernelPlan& plan);
  double product_nanoseconds(const ProductPlan& plan);
  double cell_nanoseconds(const CellPlan& plan, bool row_lanes);
  // Cells that the busiest core has, for each that a core has on average.
  double imbalance(std::span<const GridAxis> grid) const;

  size_t turned_axis_ =
      kNoAxis;  // of the plan that is being made: along which loads are transposed
};

}  // namespace anneal
