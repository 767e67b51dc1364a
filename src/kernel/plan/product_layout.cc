#include "kernel/plan/product_layout.h"

#include <algorithm>

#include "kernel/plan/cost.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr int64_t kManyTerms = 64;  // of a block that is worth a sum of its own, for accuracy

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// Rows whose distance is a power of two would meet in the same places of a cache.
int64_t without_conflicts(int64_t row, DType dtype) {
  const auto bytes = static_cast<int64_t>(byte_size(dtype));
  return row * bytes % kCacheConflict == 0 ? row + kCacheLine / bytes : row;
}

bool is_summed(const ProductPlan& plan, size_t axis) {
  return std::ranges::count(plan.summed, axis) > 0;
}

// Dimensions in the order in which they are added, each in steps over all before it.
class LayoutMaker {
 public:
  LayoutMaker(const ProductPlan& plan, const Analysis& analysis)
      : plan_(plan), analysis_(analysis), lanes_(plan.columns.tile.lanes) {}

  void add(size_t axis, int64_t elements) {
    layout_.dimensions.push_back({axis, layout_.elements});
    layout_.elements *= elements;
  }
  // Axes that run as one are neighbours in order; whole tiles have room behind them.
  void add_side(const ProductSide& side) {
    const std::vector<size_t> axes = blocked_axes(plan_, side);
    if (axes.empty()) return;
    const int64_t before = layout_.elements;
    for (size_t i = axes.size(); i-- > 0;) add(axes[i], elements_of(axes[i]));
    int64_t elements = round_up(layout_.elements / before, side.tile.elements());
    // A vector at the end of an inner axis goes beyond it.
    if (axes.size() > 1) elements += lanes_;
    layout_.elements = before * round_up(elements, lanes_);
  }
  void add_summed() {
    for (size_t i = plan_.summed.size(); i-- > 0;)
      add(plan_.summed[i], elements_of(plan_.summed[i]));
  }
  // Micro-panels, as in BLIS: what one register tile reads, k step after k step, is contiguous, so
  // that the inner loop streams and the hardware prefetcher follows it. Not for rows: the vectors
  // that pack them would cross from one panel of a few rows into the next.
  void add_panels(size_t axis, int64_t width) {
    add(axis, width);
    add_summed();
    layout_.dimensions[0].panel = width;
    layout_.dimensions[0].panel_stride = layout_.elements;
    layout_.elements = layout_.elements * ((elements_of(axis) + width - 1) / width) + lanes_;
  }
  // What the last vector of a row may go beyond it.
  void pad_row() { layout_.elements = round_up(layout_.elements, lanes_) + lanes_; }
  void pad_end() { layout_.elements += lanes_; }
  void avoid_conflicts(DType dtype) {
    layout_.elements = without_conflicts(layout_.elements, dtype);
  }
  PackedLayout take() { return std::move(layout_); }

 private:
  int64_t elements_of(size_t axis) const {
    if (axis == plan_.summed[0]) return plan_.depth;
    if (!is_summed(plan_, axis)) return plan_.grid_axis(axis).block;
    return static_value(analysis_.size(axis));
  }

  const ProductPlan& plan_;
  const Analysis& analysis_;
  int64_t lanes_;
  PackedLayout layout_;
};

}  // namespace

std::vector<size_t> blocked_axes(const ProductPlan& plan, const ProductSide& side) {
  std::vector<size_t> axes;
  for (size_t axis : side.axes)
    if (plan.grid_axis(axis).block > 1) axes.push_back(axis);
  return axes;
}

PackedLayout packed_layout(const ProductPlan& plan, const StagedOperand& operand,
                           const Analysis& analysis) {
  const ProductSide& side = operand.of_rows ? plan.rows : plan.columns;
  const DType dtype = operand.node->dtype;
  LayoutMaker maker(plan, analysis);
  if (is_summed(plan, operand.inner)) {
    maker.add_summed();
    maker.pad_row();
    maker.avoid_conflicts(dtype);
    maker.add_side(side);
  } else if (const std::vector<size_t> axes = blocked_axes(plan, side);
             axes.size() == 1 && !operand.of_rows) {
    maker.add_panels(axes[0], side.tile.elements());
  } else {
    maker.add_side(side);
    maker.avoid_conflicts(dtype);
    maker.add_summed();
    maker.pad_end();
  }
  return maker.take();
}

PackedLayout layout_of_sum(const ProductPlan& plan, NodeRef sum, const Analysis& analysis) {
  LayoutMaker maker(plan, analysis);
  maker.add_side(plan.columns);
  maker.avoid_conflicts(sum->dtype);
  maker.add_side(plan.rows);
  return maker.take();
}

bool is_one_block(const ProductPlan& plan, const Analysis& analysis) {
  NodeRef size = analysis.size(plan.summed[0]);
  return plan.depth == 0 || (is_static(size) && static_value(size) <= plan.depth);
}

SumStages sum_stages(const ProductPlan& plan, const Analysis& analysis) {
  if (is_one_block(plan, analysis)) return {};
  int64_t terms = plan.depth;
  for (size_t axis : std::span(plan.summed).subspan(1))
    if (terms < kManyTerms) terms *= std::max<int64_t>(1, bounds(analysis.size(axis)).max);
  SumStages stages;
  stages.begin_anew = terms >= kManyTerms;
  stages.blocks_of_stage = stages.begin_anew ? kLongestRun : kLongestRun / terms;
  const int64_t blocks = (bounds(analysis.size(plan.summed[0])).max - 1) / plan.depth;
  for (int64_t rounds = blocks / stages.blocks_of_stage; rounds > 0; rounds /= kLongestRun)
    ++stages.after_first;
  return stages;
}

}  // namespace anneal
