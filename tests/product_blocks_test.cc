// How products are cut on processors that are not at hand: blocks must fit the caches each of them
// has, and cells must come out even for as many threads as it has cores.
#include <algorithm>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "kernel/plan/analysis.h"
#include "kernel/plan/plan.h"
#include "schedule/schedule.h"
#include "target/target.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

struct Processor {
  std::string_view name;
  int vector_bytes;
  int64_t l1, l2, l3;

  Capabilities capabilities(int cores) const {
    Machine machine;
    machine.cores = cores;
    machine.caches = {{1, "data", l1, 1}, {2, "unified", l2, 1}, {3, "unified", l3, cores}};
    return capabilities_of(cpu_target(vector_bytes, machine));
  }
};

constexpr Processor kProcessors[] = {
    {"Zen 2", 32, 32 * kKiB, 512 * kKiB, 16 * kMiB},
    {"Zen 4", 64, 32 * kKiB, 1 * kMiB, 32 * kMiB},
    {"Skylake-X", 64, 32 * kKiB, 1 * kMiB, 22 * kMiB},
    {"Ice Lake", 64, 48 * kKiB, 1280 * kKiB, 36 * kMiB},
    {"Sapphire Rapids", 64, 48 * kKiB, 2 * kMiB, 105 * kMiB},
    {"Neoverse", 16, 64 * kKiB, 1 * kMiB, 32 * kMiB},
};
constexpr int64_t kSizes[] = {768, 1000, 1024, 1536, 2048, 3000, 4096};

// A plain product of matrices and how it is cut.
struct Cut {
  ProductPlan plan;
  int64_t size;

  int64_t block(const ProductSide& side) const { return plan.grid_axis(side.axes.back()).block; }
  int64_t blocks(const ProductSide& side) const { return (size - 1) / block(side) + 1; }
  int64_t cells() const { return blocks(plan.rows) * blocks(plan.columns); }
  int64_t depth() const { return plan.depth == 0 ? size : std::min(plan.depth, size); }
  int64_t row_bytes() const { return block(plan.rows) * depth() * 4; }
  int64_t column_bytes() const { return block(plan.columns) * depth() * 4; }
};

Cut cut_of(const Processor& processor, int cores, int64_t size) {
  Tensor a = input("a", {size, size}), b = input("b", {size, size});
  const Capabilities capabilities = processor.capabilities(cores);
  const NodeRef roots[] = {node_of(matmul(a, b))};
  const Schedule schedule = schedule_program(simplify_program(roots), {capabilities, {}});
  Analysis analysis(schedule.kernels.at(0).phases.at(0).at(0).body);
  Planner planner(analysis, capabilities, {});
  const KernelPlan plan = planner.plan();
  REQUIRE(std::holds_alternative<ProductPlan>(plan.kind));
  return {std::get<ProductPlan>(plan.kind), size};
}

// The time of so many threads that take cells one after the other, in terms of what each would need
// if all had the same to do.
double share_of_largest(const Cut& cut, int threads) {
  std::vector<double> busy(static_cast<size_t>(threads), 0.0);
  double all = 0;
  for (int64_t i = 0; i < cut.size; i += cut.block(cut.plan.rows))
    for (int64_t j = 0; j < cut.size; j += cut.block(cut.plan.columns)) {
      const auto work = static_cast<double>(std::min(cut.block(cut.plan.rows), cut.size - i) *
                                            std::min(cut.block(cut.plan.columns), cut.size - j));
      *std::ranges::min_element(busy) += work;
      all += work;
    }
  return std::ranges::max(busy) * threads / all;
}

}  // namespace

TEST_CASE("product blocks: operands of a cell stay in the caches of each processor") {
  for (const Processor& processor : kProcessors)
    for (const int64_t size : kSizes) {
      CAPTURE(processor.name);
      CAPTURE(size);
      const Cut cut = cut_of(processor, 8, size);
      CHECK(cut.column_bytes() <= std::max<int64_t>(processor.l2 * 3 / 4, 160 * kKiB));
      // What one tile of rows reads again for every tile of columns.
      CHECK(cut.plan.rows.tile.elements() * cut.depth() * 4 <= processor.l1);
    }
}

TEST_CASE("product blocks: cores have the same to do, without packing everything again") {
  for (const Processor& processor : kProcessors)
    for (const int64_t size : kSizes)
      for (const int cores : {2, 4, 8, 16, 32}) {
        CAPTURE(processor.name);
        CAPTURE(size);
        CAPTURE(cores);
        const Cut cut = cut_of(processor, cores, size);
        CAPTURE(cut.cells());
        CHECK(share_of_largest(cut, cores) <= 1.2);
        // An operand is packed once for every block of the other side, at 0.3 steps an element: all
        // of it is less than a tenth of the steps of the product.
        double packed = 0;
        for (const StagedOperand& staged : cut.plan.staged)
          packed += 0.3 * static_cast<double>(
                              cut.blocks(staged.of_rows ? cut.plan.columns : cut.plan.rows));
        CHECK(packed < 0.1 * static_cast<double>(size) / cut.plan.columns.tile.lanes);
      }
}
