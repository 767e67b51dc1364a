// Chooses how a body runs: which axes make the grid, what is vectorised, unrolled and tiled.
// A function of the body and the device's capabilities alone. Emits nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "body/product.h"
#include "kernel/plan/kernel_plan.h"
#include "kernel/plan/regions.h"
#include "target/capabilities.h"
#include "target/workgroup_tiles.h"

namespace anneal {

// A way to run a body, and what it is expected to take.
struct PlanCandidate {
  KernelPlan plan;
  double nanoseconds = 0;  // on all cores; 0: it is not known
};

// What of a product is given instead of chosen; the rest follows.
struct ProductPins {
  int row_copies = 0, column_copies = 0;
  int64_t depth = 0;
  std::vector<int64_t> blocks = {};         // of the grid's axes
  int64_t most_rows = 0, most_columns = 0;  // of a block, instead of those
};

// The same of a plan for workgroups; 0: it is chosen.
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

class Planner {
 public:
  Planner(Analysis& analysis, const Capabilities& capabilities,
          const std::vector<std::string>& disabled);

  // What does best, of all ways there are. `row_lanes`: of a body whose tiles are rows.
  KernelPlan plan(bool row_lanes = false);
  // The same first, then other ways that may do better than they are expected to, the most
  // promising first.
  std::vector<PlanCandidate> candidates(bool row_lanes = false);
  // Why a plan is none that this planner could make; empty: it is one. Such a plan computes what
  // the body does, wherever its text comes from.
  std::string why_not(const KernelPlan& plan, bool row_lanes = false);

 private:
  bool is_simd() const { return capabilities_.workgroup_threads == 0; }
  KernelPlan make(bool row_lanes, const WorkgroupPins& pins);
  KernelPlan::Kind choose(bool row_lanes);
  KernelPlan::Kind choose_for_workgroup(bool row_lanes);
  bool may_be(WorkgroupPins::Form form) const;
  CellPlan plan_cell();
  // Of a body with tiles: lanes run over the last axis of the tiles, stores one after the other.
  CellPlan plan_tiles();
  // Where the body is a product, and it pays to treat it as one.
  std::optional<ProductPlan> plan_product(const ProductPins& pins = {});
  static ProductPins pins_of(const ProductPlan& plan);
  std::string why_not_legal(const ProductPlan& plan);
  std::vector<ProductPins> product_variants(const ProductPlan& chosen);
  bool has_free_blocks() const;
  int64_t most_block(const GridAxis& axis) const;
  void add_products(std::vector<PlanCandidate>& all, bool row_lanes);
  void add_cells(std::vector<PlanCandidate>& all, bool row_lanes);
  // Of a product on all cores.
  double product_nanoseconds(const ProductPlan& plan);
  double cell_nanoseconds(const CellPlan& plan, bool row_lanes);
  double nanoseconds(const KernelPlan& plan);
  // ---- of workgroups
  std::vector<WorkgroupPins> workgroup_variants(const KernelPlan& own) const;
  void add_for_workgroup(std::vector<PlanCandidate>& all, bool row_lanes);
  bool is_of_workgroup(const KernelPlan& plan, const KernelPlan& own, bool row_lanes);
  bool has_room(const KernelPlan& plan) const;
  double workgroup_nanoseconds(const KernelPlan& plan);
  // Without what every launch takes.
  double nanoseconds_of(const WorkgroupProduct& plan);
  double nanoseconds_of(const WorkgroupElements& plan);
  double nanoseconds_of(const TransposeTile& plan);
  double nanoseconds_of(const CellPlan& plan);
  double bytes_of_memory();
  double bytes_per_nanosecond() const;
  double flop_per_nanosecond() const;
  // Cells that the busiest core has, for each that a core has on average.
  double imbalance(std::span<const GridAxis> grid) const;
  // Sums of long columns, for which rows are read from end to end: a product without rows.
  std::optional<ProductPlan> plan_column_reduction();
  // Of groups of threads: elements one by one, and products; where that is better than a group for
  // each row.
  std::optional<WorkgroupElements> plan_elements();
  std::optional<TransposeTile> plan_transpose();
  std::optional<WorkgroupProduct> plan_workgroup_product();
  // Loops for reductions over the same axes.
  ReductionPlan plan_reduction(const Region& region);
  std::vector<AxisLoop> reduction_loops(const Region& region, bool lanes_around, int& most);

  const Region* heaviest_sum() const;
  using Operands = ProductOperands;
  Operands operands_of(const Region& region, size_t rows, size_t columns);
  std::vector<size_t> side_axes(const std::vector<NodeRef>& here,
                                const std::vector<NodeRef>& there);
  bool can_flatten(std::span<const NodeRef> roots, std::span<const size_t> axes,
                   std::span<const NodeRef> known = {});
  void choose_product_tile(ProductPlan& plan, const ProductPins& pins) const;
  void choose_depth(ProductPlan& plan, const ProductPins& pins) const;
  bool has_sums_in_memory(const ProductPlan& plan) const;
  void choose_product_blocks(ProductPlan& plan, const Region& region, const ProductPins& pins);
  void choose_staged(ProductPlan& plan, const Region& region, const Operands& operands);
  void choose_flat(ProductPlan& plan, const Operands& operands);
  void choose_together(ProductPlan& plan);
  std::vector<size_t> summed_order(const Region& region, const Operands& operands);
  int64_t block_side(ProductPlan& plan, const ProductSide& side, int64_t most) const;
  double product_cost(const Region& region, size_t rows, size_t columns);
  // The axes that cost least as rows and columns; kNoAxis: it is no product.
  struct Sides {
    size_t rows = AxisSet::kMost, columns = AxisSet::kMost;
  };
  Sides choose_sides(const Region& region);
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
  double extent(std::span<const size_t> axes) const;
  static bool is_plain(NodeRef operand);
  bool lies_as_summed(NodeRef operand, std::span<const size_t> summed);
  size_t flat_axes(NodeRef operand, std::span<const size_t> summed);
  double pack_cost(NodeRef operand, size_t last, bool of_rows, std::span<const size_t> summed);
  size_t axis_of_stride(NodeRef operand, const AxisSet& axes, Stride stride, size_t preferred);

  static constexpr size_t kNoAxis = AxisSet::kMost;

  bool enabled(std::string_view name) const;
  AxisSet common_axes() const;
  std::vector<std::vector<NodeRef>> groups_of_stores() const;
  AxisSet ordered_axes(const Region& region) const;

  int lanes() const { return lanes_; }
  int most_copies(size_t nodes) const;
  size_t nodes_of_all_regions() const;
  void vectorize_accesses(const Region& region, size_t axis, Tile& tile) const;
  // Elements that one step over a vector of the axis advances, on average.
  double speed(size_t axis) const;
  double speed_over(double elements) const;
  double cost(const Region& region, size_t vector_axis);
  size_t zipped_axis(NodeRef store, size_t axis);
  size_t best_own_axis(const Region& region);
  size_t choose_vector_axis(const AxisSet& common);

  bool is_reused_along(const Region& region, size_t axis);
  void turn_blocks(size_t vector_axis, CellPlan& plan);
  void choose_register_tile(size_t vector_axis, CellPlan& plan);
  int threads_of_rows(size_t vector_axis);
  int copies_of_stream(const Region& region, size_t axis) const;
  std::vector<size_t> by_stride(const std::vector<size_t>& axes, NodeRef access, size_t last);
  struct Work {
    double nanoseconds = 0, bytes = 0;
  };
  Work work_of(size_t vector_axis);
  void choose_blocks(size_t vector_axis, CellPlan& plan);
  void choose_turned_blocks(size_t vector_axis, int64_t cells, CellPlan& plan);

  Analysis& analysis_;
  Capabilities capabilities_;
  std::vector<std::string> disabled_;
  std::vector<std::vector<NodeRef>> groups_;
  std::vector<Region> regions_;
  int most_lanes_ = 1;  // by what is computed
  // Of the plan that is being made.
  WorkgroupPins pins_;
  int lanes_ = 1;
  size_t turned_axis_ = kNoAxis;   // along which loads are transposed
  bool groups_have_rows_ = false;  // each for one result, whose terms its threads share
};

}  // namespace anneal
