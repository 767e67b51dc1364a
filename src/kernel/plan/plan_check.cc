#include "kernel/plan/plan_check.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "kernel/plan/product_layout.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// ---- memory of the cell

std::vector<LocalBuffer> memory_of(const KernelPlan& all, const CellPlan& plan,
                                   const Analysis& analysis) {
  std::vector<LocalBuffer> memory;
  const int64_t rows = all.row_lanes ? plan.grid.back().tile.elements() : 1;
  for (NodeRef tile : analysis.body().tiles)
    memory.push_back({tile->dtype, std::max<int64_t>(1, bounds(tile->dim(0)).max) * rows});
  return memory;
}

std::vector<LocalBuffer> memory_of(const KernelPlan&, const ProductPlan& plan,
                                   const Analysis& analysis) {
  std::vector<LocalBuffer> memory;
  for (const StagedOperand& operand : plan.staged)
    memory.push_back({operand.node->dtype, packed_layout(plan, operand, analysis).elements});
  const int64_t sums = is_one_block(plan, analysis) ? int64_t{plan.through_memory}
                                                    : sum_stages(plan, analysis).after_first + 1;
  for (int64_t i = 0; i < sums; ++i)
    for (NodeRef sum : plan.sums)
      memory.push_back({sum->dtype, layout_of_sum(plan, sum, analysis).elements});
  return memory;
}

std::vector<LocalBuffer> memory_of(const KernelPlan&, const WorkgroupElements&, const Analysis&) {
  return {};
}

std::vector<LocalBuffer> memory_of(const KernelPlan&, const TransposeTile& plan, const Analysis&) {
  std::vector<LocalBuffer> memory;
  for (NodeRef load : plan.turned)
    memory.push_back({load->dtype, TransposeTile::kSide * TransposeTile::kStride});
  return memory;
}

std::vector<LocalBuffer> memory_of(const KernelPlan&, const WorkgroupProduct& plan,
                                   const Analysis&) {
  std::vector<LocalBuffer> memory;
  if (plan.matrices.empty()) {
    for (const WorkgroupOperand& operand : plan.staged)
      memory.push_back({operand.node->dtype, plan.staged_stride(operand.of_rows) * plan.depth});
    return memory;
  }
  for (const bool of_rows : {true, false}) {
    const WorkgroupProduct::MatrixBlock block = plan.matrix_block(of_rows);
    memory.push_back({DType::F16, block.stride * block.rows});
  }
  const int64_t units = plan.threads() / kMatrixUnit.lanes;
  memory.push_back({DType::F32, units * plan.matrices_at_once * WorkgroupProduct::kSumElements});
  return memory;
}

// ---- registers

int copies_of(std::span<const GridAxis> grid) {
  int copies = 1;
  for (const GridAxis& axis : grid) copies *= axis.tile.copies;
  return copies;
}

int registers_of(const CellPlan& plan) {
  int most = 1;
  for (const StorePlan& stores : plan.stores) {
    int copies = static_cast<int>(stores.stores.size());
    for (const AxisLoop& loop : stores.loops) copies *= loop.tile.copies;
    most = std::max(most, copies);
  }
  return most * copies_of(plan.grid);
}
// The sums, the vectors they need and the element that is spread over lanes.
int registers_of(const ProductPlan& plan) {
  const int vectors = plan.columns.tile.copies;
  return static_cast<int>(plan.sums.size()) * plan.rows.tile.copies * vectors + vectors + 1;
}
int registers_of(const WorkgroupElements& plan) {
  return plan.copies * plan.neighbours * static_cast<int>(plan.stores.size());
}
int registers_of(const TransposeTile& plan) {
  constexpr int kRows = TransposeTile::kSide * TransposeTile::kSide / TransposeTile::kThreads;
  return kRows * static_cast<int>(plan.turned.size());
}
int registers_of(const WorkgroupProduct& plan) {
  return static_cast<int>(plan.sums.size()) * plan.rows.copies * plan.columns.copies;
}

// ---- checks

constexpr int kMostLanes = 1024, kMostCopies = 255;  // which copy: eight bits a slot

class Checker {
 public:
  explicit Checker(const Analysis& analysis) : analysis_(analysis) {}
  std::string take() { return std::move(problem_); }

  void check(bool holds, std::string_view what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  void axis(size_t axis) {
    check(axis < analysis_.axis_count(), fmt::format("there is no axis {}", axis));
  }
  void axes(std::span<const size_t> axes) {
    for (size_t each : axes) axis(each);
    check(std::set<size_t>(axes.begin(), axes.end()).size() == axes.size(),
          "an axis is named twice");
  }
  void tile(const Tile& tile) {
    check(tile.lanes >= 1 && tile.lanes <= kMostLanes, fmt::format("{} lanes", tile.lanes));
    check(tile.copies >= 1 && tile.copies <= kMostCopies, fmt::format("{} copies", tile.copies));
    check(tile.neighbours >= 1 && tile.copies % std::max(1, tile.neighbours) == 0,
          fmt::format("{} neighbours of {} copies", tile.neighbours, tile.copies));
  }
  void loops(std::span<const AxisLoop> loops) {
    for (const AxisLoop& loop : loops) axis(loop.axis), tile(loop.tile);
  }
  void grid(std::span<const GridAxis> grid) {
    std::vector<size_t> axes;
    for (const GridAxis& each : grid) {
      axes.push_back(each.axis);
      tile(each.tile);
      check(each.block >= 1 && each.block % std::max(1, each.tile.elements()) == 0,
            fmt::format("a block of {} elements is not made of tiles of {}", each.block,
                        each.tile.elements()));
    }
    this->axes(axes);
  }
  void stores(std::span<const NodeRef> stores) {
    check(!stores.empty(), "nothing is stored");
    for (NodeRef store : stores)
      check(std::ranges::count(analysis_.body().stores, store) > 0,
            "what is named as a store is none of the body's");
  }
  // Every store of the body once.
  void all_stores(std::span<const NodeRef> stores) {
    this->stores(stores);
    check(stores.size() == analysis_.body().stores.size() &&
              std::set<NodeRef>(stores.begin(), stores.end()).size() == stores.size(),
          "not every store of the body is made once");
  }
  void sums(std::span<const NodeRef> sums, std::span<const size_t> summed) {
    check(!sums.empty(), "nothing is summed");
    axes(summed);
    check(!summed.empty(), "no axis is summed");
    for (NodeRef sum : sums) {
      if (!problem_.empty()) return;
      check(is_reduce_over(sum->op), "what is named as a sum is no reduction");
      if (!problem_.empty()) return;
      AxisSet named;
      for (size_t axis : summed) named.add(axis);
      check(analysis_.listed_set(sum) == named, "a sum runs over other axes");
    }
  }
  bool failed() const { return !problem_.empty(); }
  const Analysis& analysis() const { return analysis_; }

 private:
  const Analysis& analysis_;
  std::string problem_;
};

void check_kind(Checker& checker, const CellPlan& plan) {
  checker.grid(plan.grid);
  std::vector<NodeRef> stores;
  for (const StorePlan& each : plan.stores) {
    checker.loops(each.loops);
    if (each.block_axis != AxisSet::kMost) checker.axis(each.block_axis);
    stores.insert(stores.end(), each.stores.begin(), each.stores.end());
  }
  checker.all_stores(stores);
}

void check_kind(Checker& checker, const ProductPlan& plan) {
  checker.grid(plan.grid);
  checker.all_stores(plan.stores);
  checker.sums(plan.sums, plan.summed);
  checker.check(plan.depth >= 0, "the k tile is negative");
  checker.check(plan.depth > 0 || plan.staged.empty(), "staged operands need a k tile");
  checker.check(!plan.columns.axes.empty(), "there are no columns");
  for (const ProductSide* side : {&plan.rows, &plan.columns}) {
    checker.axes(side->axes);
    checker.tile(side->tile);
    for (size_t axis : side->axes)
      checker.check(std::ranges::count(plan.grid, axis, &GridAxis::axis) == 1,
                    "an axis of a side is none of the grid's");
  }
  checker.tile(plan.step);
  for (const StagedOperand& operand : plan.staged) {
    checker.axis(operand.inner);
    if (operand.turned != AxisSet::kMost) checker.axis(operand.turned);
    checker.check(operand.flat <= plan.summed.size(), "more axes are flat than are summed");
    checker.check(operand.together >= 1 &&
                      operand.together <= (operand.of_rows ? plan.rows : plan.columns).axes.size(),
                  "more axes are packed as one than a side has");
  }
}

void check_kind(Checker& checker, const WorkgroupElements& plan) {
  checker.all_stores(plan.stores);
  checker.axes(plan.axes);
  checker.check(plan.threads >= 1 && plan.neighbours >= 1 && plan.copies >= 1,
                "a thread has no elements");
}

void check_kind(Checker& checker, const TransposeTile& plan) {
  checker.all_stores(plan.stores);
  checker.axes(plan.others);
  checker.axis(plan.along);
  checker.axis(plan.across);
  checker.check(plan.along != plan.across && !plan.turned.empty(), "nothing is transposed");
}

void check_kind(Checker& checker, const WorkgroupProduct& plan) {
  checker.all_stores(plan.stores);
  checker.sums(plan.sums, plan.summed);
  checker.axes(plan.others);
  for (const WorkgroupSide* side : {&plan.rows, &plan.columns}) {
    checker.axes(side->axes);
    checker.check(side->threads >= 1 && side->copies >= 1 && side->neighbours >= 1,
                  "a side of a tile is empty");
  }
  checker.check(plan.depth >= 1 && plan.blocks >= 1 && plan.unroll >= 1, "the k tile is empty");
  for (const MatrixFactors& each : plan.matrices)
    checker.check(each.of_rows < plan.staged.size() && each.of_columns < plan.staged.size(),
                  "a matrix unit multiplies what is not staged");
}

}  // namespace

std::vector<LocalBuffer> cell_memory(const KernelPlan& plan, const Analysis& analysis) {
  return std::visit([&](const auto& kind) { return memory_of(plan, kind, analysis); }, plan.kind);
}

int64_t cell_memory_bytes(const KernelPlan& plan, const Analysis& analysis) {
  int64_t bytes = 0;
  for (const LocalBuffer& local : cell_memory(plan, analysis))
    bytes += local.elements * static_cast<int64_t>(byte_size(local.dtype));
  return bytes;
}

int registers(const KernelPlan& plan) {
  return std::visit([](const auto& kind) { return registers_of(kind); }, plan.kind);
}

std::string verify(const KernelPlan& plan, const Analysis& analysis) {
  Checker checker(analysis);
  std::visit([&](const auto& kind) { check_kind(checker, kind); }, plan.kind);
  for (const ReductionPlan& each : plan.reductions) {
    checker.check(!each.reductions.empty() && !each.alone.empty() && !each.within_lanes.empty(),
                  "a reduction has no loops");
    checker.loops(each.alone);
    checker.loops(each.within_lanes);
    checker.check(each.most_copies_alone >= 1 && each.most_copies_within >= 1,
                  "a reduction has no copies");
  }
  for (NodeRef reduction : analysis.reductions())
    checker.check(std::ranges::any_of(plan.reductions,
                                      [&](const ReductionPlan& each) {
                                        return std::ranges::count(each.reductions, reduction) > 0;
                                      }),
                  "a reduction has no plan");
  return checker.take();
}

}  // namespace anneal
