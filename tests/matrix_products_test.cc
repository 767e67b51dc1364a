// Products of f32 made of f16 halves, for units that multiply matrices.
#include <algorithm>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "lower_check.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

// Whatever its size.
Schedule scheduled(const std::vector<Tensor>& results, double threshold_scale) {
  std::vector<NodeRef> roots;
  for (const Tensor& result : results) roots.push_back(result.node());
  ScheduleOptions options;
  options.capabilities = matrix_device();
  options.threshold_scale = threshold_scale;
  options.disabled = {"split-reduce"};
  return schedule_program(simplify_program(roots), options);
}

Schedule scheduled(const Tensor& result, double threshold_scale = 1 << 20) {
  return scheduled(std::vector{result}, threshold_scale);
}

bool has_matrices(const Program& program) {
  return std::ranges::any_of(
      program.code, [](const Instruction& each) { return each.code == Code::MatrixMultiplyAdd; });
}

std::vector<Program> parts_of(const Schedule& schedule) {
  return programs_of(schedule, matrix_device());
}

// Parts of a schedule whose programs multiply matrices, each compared with what its body says.
int parts_with_matrices(const Schedule& schedule) {
  const std::vector<Program> programs = parts_of(schedule);
  GraphScope scope(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) check_lowering(part.body);
  return static_cast<int>(std::ranges::count_if(programs, has_matrices));
}

}  // namespace

TEST_CASE("matrix products: large ones of f32 alone, and none of a batch") {
  auto parts = [](const Tensor& product) { return parts_of(scheduled(product, 1)); };
  const Tensor a = input("a", {1024, 512}), b = input("b", {512, 1024});
  const std::vector<Program> large = parts(matmul(a, b));
  CHECK(std::ranges::count_if(large, has_matrices) == 1);
  // Before it, one kernel looks for the largest numbers of both.
  CHECK(large.size() == 2);
  auto none = [&](const Tensor& product) {
    return std::ranges::none_of(parts(product), has_matrices);
  };
  CHECK(none(matmul(input("c", {256, 512}), b)));                           // little work
  CHECK(none(matmul(input("h", {1024, 1023}), input("i", {1023, 1024}))));  // no fours
  CHECK(none(matmul(input("d", {64, 16384}), input("e", {16384, 1024}))));
  CHECK(none(matmul(cast(a, DType::BF16), cast(b, DType::BF16))));
  CHECK(none(matmul(input("f", {4, 1024, 512}), input("g", {4, 512, 1024}))));
}

TEST_CASE("matrix products: what several read is looked through once, before it is replaced") {
  const Tensor x = input("x", {1024, 512}), w = parameter("w", zeros({512, 1024}));
  const Tensor h = gelu(matmul(x, w));
  const Tensor out = matmul(h, input("v", {1024, 512}));
  const Schedule schedule = scheduled({out, matmul(transpose(x), h)}, 1);
  int largest = 0;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        largest += static_cast<int>(std::ranges::count_if(
            part.body.stores, [](NodeRef store) { return store->source(3)->op == Op::MaxOver; }));
  CHECK(largest == 4);  // x, w, v and h
  CHECK(std::ranges::count_if(parts_of(schedule), has_matrices) == 3);
}

TEST_CASE("matrix products: rows and columns in any order, whole blocks and rests") {
  struct Sizes {
    int64_t rows, columns, terms;
  };
  for (const auto& [rows, columns, terms] : {Sizes{64, 64, 32}, {70, 36, 24}}) {
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

// Units cut off what they add, so that they add up no more than 1536 terms.
TEST_CASE("matrix products: long sums go on in f32") {
  const Tensor a = input("a", {8, 1570}), b = input("b", {1570, 8});
  const Schedule schedule = scheduled(matmul(a, b));
  CHECK(parts_with_matrices(schedule) == 1);
  const std::vector<Program> programs = parts_of(schedule);
  const Program& product = *std::ranges::find_if(programs, has_matrices);
  CHECK(std::ranges::count(product.code, Code::Loop, &Instruction::code) == 2);
}
