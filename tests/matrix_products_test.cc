// Products of f32 made of f16 halves, for units that multiply matrices.
#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "kernel/lower.h"
#include "lower_check.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

// Whatever its size.
Schedule scheduled(const Tensor& result, double eagerness = 1 << 20) {
  const std::vector<NodeRef> roots{result.node()};
  ScheduleOptions options;
  options.capabilities = matrix_device();
  options.eagerness = eagerness;
  options.disabled = {"split-reduce"};
  return schedule_program(simplify_program(roots), options);
}

// Parts of a schedule whose programs multiply matrices, each compared with what its body says.
int parts_with_matrices(const Schedule& schedule) {
  GraphScope scope(*schedule.graph);
  int count = 0;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        const Program program = lower(part.body, {.capabilities = matrix_device(), .disabled = {}}).program;
        const bool any = std::ranges::any_of(program.code, [](const Instruction& each) {
          return each.code == Code::MatrixMultiplyAdd;
        });
        count += any ? 1 : 0;
        check_lowering(part.body);
      }
  return count;
}

}  // namespace

TEST_CASE("matrix products: rows and columns in any order, whole blocks and rests") {
  struct Sizes {
    int64_t rows, columns, terms;
  };
  for (const auto& [rows, columns, terms] : {Sizes{64, 64, 32}, {70, 40, 24}, {33, 130, 50}}) {
    CAPTURE(rows);
    const Tensor a = input("a", {rows, terms}), b = input("b", {terms, columns}),
                 turned_a = input("c", {terms, rows}), turned_b = input("d", {columns, terms});
    CHECK(parts_with_matrices(scheduled(matmul(a, b))) == 1);
    CHECK(parts_with_matrices(scheduled(matmul(a, transpose(turned_b)))) == 1);
    CHECK(parts_with_matrices(scheduled(matmul(transpose(turned_a), b))) == 1);
    CHECK(parts_with_matrices(scheduled(gelu(matmul(transpose(turned_a), transpose(turned_b))))) ==
          1);
  }
}
