// How packed operands and kept sums of a product lie in memory of the cell: known from the plan
// alone, so that nothing has to be emitted to learn how much it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/plan/kernel_plan.h"

namespace anneal {

// Element (i, j, ..), each from where the cell's block of its axis begins, lies at i * stride + ..
struct PackedLayout {
  struct Dimension {
    size_t axis;
    int64_t stride;
    // The axis is cut into micro-panels of so many elements, this far apart; 0: it is not.
    int64_t panel = 0, panel_stride = 0;
  };
  std::vector<Dimension> dimensions;
  int64_t elements = 1;
};

// The axes of a side of which a cell has several elements, the outermost first.
std::vector<size_t> blocked_axes(const ProductPlan& plan, const ProductSide& side);

PackedLayout packed_layout(const ProductPlan& plan, const StagedOperand& operand,
                           const Analysis& analysis);
PackedLayout layout_of_sum(const ProductPlan& plan, NodeRef sum, const Analysis& analysis);

// Sums over many blocks go on in stages. A block of many terms begins anew and is added to what
// those before it have come to; of few, it goes on with that. After as many as may follow each
// other, sums go on in another stage.
struct SumStages {
  int64_t after_first = 0;      // how many come after the first one
  bool begin_anew = false;      // blocks do
  int64_t blocks_of_stage = 1;  // that are added to the same sums
};
SumStages sum_stages(const ProductPlan& plan, const Analysis& analysis);
// Whether the summed axis is taken in one block.
bool is_one_block(const ProductPlan& plan, const Analysis& analysis);

}  // namespace anneal
