// Chooses how a body runs: which axes make the grid, what is vectorised, unrolled and tiled.
// A function of the body and the device's capabilities alone. Emits nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/plan/regions.h"
#include "kernel/plan/workgroup_plan.h"
#include "target/capabilities.h"

namespace anneal {

// A piece of an axis that is worked on at once.
struct Tile {
  int lanes = 1;   // neighbours in one vector
  int copies = 1;  // such vectors, or scalars, one after the other
  // So many copies are next to each other, and lanes as far apart; where lanes are threads.
  int neighbours = 1;
  int elements() const { return lanes * copies; }
  // From the first element to that of a copy in the first lane.
  int64_t distance(int copy) const {
    return int64_t{copy / neighbours} * lanes * neighbours + copy % neighbours;
  }
};

struct AxisLoop {
  size_t axis;
  Tile tile;
};

// Stores that are made in the same loops, the outermost first.
struct StorePlan {
  std::vector<NodeRef> stores;
  std::vector<AxisLoop> loops;
  size_t block_axis = AxisSet::kMost;  // around them and their neighbours that have it, too
};

// An axis whose blocks are spread over the cells of the grid.
struct GridAxis {
  size_t axis;
  int64_t block;  // elements of one cell; the last one may have fewer
  Tile tile;      // in which the cell goes through its block
};

struct CellPlan {
  std::vector<GridAxis> grid;  // outermost first
  std::vector<StorePlan> stores;
};

// A value that is computed once for a block and kept in memory of the cell.
struct StagedOperand {
  NodeRef node;
  bool of_rows;
  size_t inner;                    // the axis whose elements are neighbours there
  size_t turned = AxisSet::kMost;  // the axis whose elements are neighbours in memory, if another
  // So many of the reduced axes, the last ones, are neighbours in memory as they are staged.
  size_t flat = 0;
  // So many axes of its side, the last ones, are packed as one: they lie so, but for conditions.
  size_t together = 1;
};

// The axes of the rows of a product, or of its columns, the outermost first. Where there are
// several they run as one: then what depends on them is staged, or lies in memory as if they were.
struct ProductSide {
  std::vector<size_t> axes;
  Tile tile;
};

// Sums of products, as of matrices: what depends on the rows meets what depends on the columns. A
// tile of rows and columns is summed in registers; columns are the lanes.
struct ProductPlan {
  std::vector<NodeRef> sums;  // over the same axes
  std::vector<NodeRef> stores;
  std::vector<GridAxis> grid;  // outermost first
  ProductSide rows, columns;
  std::vector<size_t> summed;  // the reduced axes; the first one is taken in blocks
  int64_t depth;               // elements of such a block; 0: all of them
  Tile step;                   // terms of a sum that are added one after the other
  std::vector<StagedOperand> staged;
  bool through_memory;  // sums stay in memory of the cell until the stores
  bool flat_sums;       // the reduced axes can run as one
  bool flat_stores;     // what is stored lies as if the columns were one axis

  const GridAxis& grid_axis(size_t axis) const;
};

class Planner {
 public:
  Planner(Analysis& analysis, const Capabilities& capabilities,
          const std::vector<std::string>& disabled);

  int64_t streaming_bytes() const { return capabilities_.streaming_bytes; }
  int64_t fast_memory_bytes() const { return capabilities_.fast_memory_bytes; }
  // Whether values can move between lanes.
  bool is_simd() const { return capabilities_.workgroup_threads == 0; }

  CellPlan plan_cell();
  // Of a body with tiles: lanes run over the last axis of the tiles, stores one after the other.
  CellPlan plan_tiles();
  // Where the body is a product, and it pays to treat it as one.
  std::optional<ProductPlan> plan_product();
  // Sums of long columns, for which rows are read from end to end: a product without rows.
  std::optional<ProductPlan> plan_column_reduction();
  // Of groups of threads: elements one by one, and products; where that is better than a group for
  // each row.
  std::optional<WorkgroupElements> plan_elements();
  std::optional<TransposeTile> plan_transpose();
  std::optional<WorkgroupProduct> plan_workgroup_product();
  // Loops for reductions over the same axes, given which axes have lanes around them, and how many
  // accumulators there are before the reduced axes bring copies of their own.
  std::vector<AxisLoop> plan_reduction(const std::vector<NodeRef>& reductions,
                                       const AxisSet& lanes_around, int accumulators);

 private:
  const Region* heaviest_sum() const;
  // What the terms of a sum are made of: subexpressions that change with the summed axes and with
  // rows or columns but not with both, as large as they can be.
  struct Operands {
    std::vector<NodeRef> of_rows, of_columns;
    std::vector<NodeRef> others;  // depend on neither
    bool mixed = false;           // something depends on both
  };
  Operands operands_of(const Region& region, size_t rows, size_t columns);
  std::vector<size_t> side_axes(const std::vector<NodeRef>& here,
                                const std::vector<NodeRef>& there);
  bool can_flatten(std::span<const NodeRef> roots, std::span<const size_t> axes,
                   std::span<const NodeRef> known = {});
  void choose_product_tile(ProductPlan& plan) const;
  void choose_product_blocks(ProductPlan& plan, const Region& region);
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
  void choose_blocks(size_t vector_axis, CellPlan& plan);
  void choose_turned_blocks(size_t vector_axis, int64_t cells, CellPlan& plan);

  Analysis& analysis_;
  Capabilities capabilities_;
  std::vector<std::string> disabled_;
  std::vector<std::vector<NodeRef>> groups_;
  std::vector<Region> regions_;
  int lanes_ = 1;
  size_t turned_axis_ = kNoAxis;   // along which loads are transposed
  bool groups_have_rows_ = false;  // each for one result, whose terms its threads share
};

}  // namespace anneal
