// What planners of all targets share: regions of the body, which axis vectors run along, loops over
// elements and reductions, and the sides of products. Lanes are parts of a vector or threads; how
// many there are, and what pays with them, each planner says for itself.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "body/product.h"
#include "kernel/plan/plan.h"
#include "kernel/plan/regions.h"

namespace anneal {

class BodyPlanner {
 public:
  BodyPlanner(Analysis& analysis, const Capabilities& capabilities,
              const std::vector<std::string>& disabled);
  virtual ~BodyPlanner() = default;
  BodyPlanner(const BodyPlanner&) = delete;
  BodyPlanner& operator=(const BodyPlanner&) = delete;

  // See Planner.
  virtual KernelPlan plan(bool row_lanes) { return make(row_lanes, most_lanes_); }
  virtual std::vector<PlanCandidate> candidates(bool row_lanes) = 0;
  virtual std::string why_not(const KernelPlan& plan, bool row_lanes) = 0;

 protected:
  static constexpr size_t kNoAxis = AxisSet::kMost;

  // ---- what planners differ in

  virtual KernelPlan::Kind choose(bool row_lanes) = 0;
  // Lanes are parts of a vector: values can move between them.
  virtual bool has_vectors() const = 0;
  // Instructions of an access whose lanes lie in scattered places.
  virtual double scattered_access() const = 0;
  // The axis of two elements that fill the gaps where a store along the other one leaves every
  // second place free.
  virtual size_t zipped_axis(NodeRef, size_t) { return kNoAxis; }
  // Copies of so many nodes that pay.
  virtual int most_copies(size_t) const { return std::numeric_limits<int>::max(); }
  // Lanes take several elements at once, where that pays.
  virtual void vectorize_accesses(const Region&, size_t, Tile&) const {}
  // Blocks in which loads that lie across are transposed.
  virtual void turn_blocks(size_t, CellPlan&) {}
  virtual void choose_blocks(size_t vector_axis, CellPlan& plan) = 0;
  // Where each cell has a row, along which lanes go.
  virtual int lanes_along_rows(size_t) { return lanes_; }
  // Where lanes are rows of tiles.
  virtual void choose_row_lanes(GridAxis&) {}
  // Sums of a reduction that run at the same time.
  virtual int sums_worthwhile(const Region& region) const = 0;

  // ---- loops

  KernelPlan make(bool row_lanes, int lanes);
  CellPlan plan_cell();
  // Of a body with tiles: lanes run over the last axis of the tiles, stores one after the other.
  CellPlan plan_tiles();
  // Loops for reductions over the same axes.
  ReductionPlan plan_reduction(const Region& region);
  std::vector<AxisLoop> reduction_loops(const Region& region, bool lanes_around, int& most);

  bool enabled(std::string_view name) const;
  AxisSet common_axes() const;
  std::vector<std::vector<NodeRef>> groups_of_stores() const;
  AxisSet ordered_axes(const Region& region) const;
  size_t widest_element() const;
  size_t nodes_of_all_regions() const;
  // Elements that one step over a vector of the axis advances, on average.
  double speed(size_t axis) const;
  double speed_over(double elements) const;
  double cost(const Region& region, size_t vector_axis);
  size_t best_own_axis(const Region& region);
  size_t choose_vector_axis(const AxisSet& common);
  bool is_reused_along(const Region& region, size_t axis);
  void choose_register_tile(size_t vector_axis, CellPlan& plan);
  int copies_of_stream(const Region& region, size_t axis) const;
  std::vector<size_t> by_stride(const std::vector<size_t>& axes, NodeRef access, size_t last);

  // ---- products: product_sides.cc

  const Region* heaviest_sum() const;
  using Operands = ProductOperands;
  Operands operands_of(const Region& region, size_t rows, size_t columns);
  // The axes that cost least as rows and columns; kNoAxis: it is no product.
  struct Sides {
    size_t rows = AxisSet::kMost, columns = AxisSet::kMost;
  };
  Sides choose_sides(const Region& region);
  double product_cost(const Region& region, size_t rows, size_t columns);
  std::vector<size_t> side_axes(const std::vector<NodeRef>& here,
                                const std::vector<NodeRef>& there);
  std::vector<size_t> summed_order(const Region& region, const Operands& operands);
  bool can_flatten(std::span<const NodeRef> roots, std::span<const size_t> axes,
                   std::span<const NodeRef> known = {});
  double extent(std::span<const size_t> axes) const;
  static bool is_plain(NodeRef operand);
  bool lies_as_summed(NodeRef operand, std::span<const size_t> summed);
  size_t flat_axes(NodeRef operand, std::span<const size_t> summed);
  double pack_cost(NodeRef operand, size_t last, bool of_rows, std::span<const size_t> summed);
  size_t axis_of_stride(NodeRef operand, const AxisSet& axes, Stride stride, size_t preferred);

  Analysis& analysis_;
  Capabilities capabilities_;
  std::vector<std::string> disabled_;
  std::vector<std::vector<NodeRef>> groups_;
  std::vector<Region> regions_;
  int most_lanes_ = 1;
  // Of the plan that is being made.
  int lanes_ = 1;
  bool groups_have_rows_ = false;  // each for one result, whose terms its lanes share
};

}  // namespace anneal
