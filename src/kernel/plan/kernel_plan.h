// How a kernel runs, as a value: which axes make the grid, what is vectorised, unrolled, tiled and
// staged. All that emission needs to know. Chooses nothing: planners do, see plan.h.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernel/plan/analysis.h"
#include "kernel/plan/workgroup_plan.h"

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

// Additions of floats that follow each other at most, before sums go on in another stage.
inline constexpr int64_t kLongestRun = 128;
// Additions take about four cycles, and two of them can start in each; threads wait for memory.
inline constexpr int kSumsInFlight = 8;

// How reductions that share loops run, where they are made by themselves.
struct ReductionPlan {
  std::vector<NodeRef> reductions;
  // The outermost first: with lanes of its own, and where lanes run along an axis around it.
  std::vector<AxisLoop> alone, within_lanes;
  // Copies of the innermost axis at most, by how many sums there are anyway.
  int most_copies_alone = 1, most_copies_within = 1;

  // `accumulators`: sums that run at the same time before the reduced axes bring copies.
  std::vector<AxisLoop> loops(bool lanes_around, int accumulators) const;
};

// A plan is made for a body and speaks of its nodes. Its text speaks of them by number, so that it
// means the same for the same body in another process.
struct KernelPlan {
  using Kind =
      std::variant<CellPlan, ProductPlan, WorkgroupElements, TransposeTile, WorkgroupProduct>;

  Kind kind;
  std::vector<ReductionPlan> reductions = {};
  bool simd = true;          // lanes are parts of a vector, and values can move between them
  bool row_lanes = false;    // lanes are the rows of a body with tiles
  int64_t far_bytes = 0;     // a value of more is not in the cache of a core: rows are prefetched
  int64_t stream_bytes = 0;  // one of so many is in no cache: stores go around them

  const ReductionPlan& reduction(NodeRef node) const;
};

}  // namespace anneal
