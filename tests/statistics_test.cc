// Work counted from kernel bodies written by hand.
#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/index.h"
#include "schedule/work_count.h"

using namespace anneal;

namespace {

NodeRef flat_buffer(int64_t slot, DType dtype, NodeRef elements) {
  return make_buffer("b", slot, dtype, std::vector{elements});
}
NodeRef flat_buffer(int64_t slot, DType dtype, int64_t elements) {
  return flat_buffer(slot, dtype, index_const(elements));
}
NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }
NodeRef at(NodeRef row, int64_t columns, NodeRef column) {
  return index_add(index_mul(row, index_const(columns)), column);
}

}  // namespace

TEST_CASE("work of a matrix product: every element of memory once, two operations a step") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef i = make_variable("i", 0, 7), j = make_variable("j", 0, 4), k = make_variable("k", 0, 2);
  NodeRef a = flat_buffer(0, DType::F32, 8 * 3), b = flat_buffer(1, DType::BF16, 3 * 5);
  NodeRef c = flat_buffer(2, DType::F32, 8 * 5);
  NodeRef left = make(Op::Load, {a, at(i, 3, k), always()});
  NodeRef right = make_cast(make(Op::Load, {b, at(k, 5, j), always()}), DType::F32);
  NodeRef dot = make(Op::SumOver, {make(Op::Mul, {left, right}), k});
  NodeRef store =
      make(Op::Store, {c, at(i, 5, j), always(), make(Op::Exp, {dot}), i, j}, Arg(int64_t{2}));
  const KernelBody body{
      {a, b, c}, {}, {{i, index_const(8)}, {j, index_const(5)}, {k, index_const(3)}},
      {store},   {}, {}};

  const WorkCount work = count_work(body);
  CHECK(work.operations == 4);  // cast, mul, sum, exp
  CHECK(work.flops == 2 * 8 * 5 * 3 + 8 * 5);
  CHECK(work.bytes_read == 4 * 8 * 3 + 2 * 3 * 5);
  CHECK(work.bytes_written == 4 * 8 * 5);

  Kernel kernel;
  kernel.phases = {{{body, {0, 1, 2}}, {body, {0, 1, 2}}}, {{body, {0, 1, 2}}}};
  CHECK(count_work(kernel).flops == 3 * work.flops);
  CHECK(count_work(kernel).operations == 3 * work.operations);
}

TEST_CASE("work done once for many elements is counted once") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef i = make_variable("i", 0, 15), j = make_variable("j", 0, 9);
  NodeRef x = flat_buffer(0, DType::F32, 16), y = flat_buffer(1, DType::F32, 160);
  NodeRef once = make(Op::Sin, {make(Op::Load, {x, i, always()})});  // does not depend on j
  NodeRef store = make(Op::Store, {y, at(i, 10, j), always(), once, i, j}, Arg(int64_t{2}));
  const WorkCount work =
      count_work({{x, y}, {}, {{i, index_const(16)}, {j, index_const(10)}}, {store}, {}, {}});
  CHECK(work.flops == 16);
  CHECK(work.bytes_read == 64);
  CHECK(work.bytes_written == 640);
}

TEST_CASE("windows that overlap read no more than there is; sizes count at their largest") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef n = make_variable("n", 1, 100), i = make_variable("i", 0, 99);
  NodeRef k = make_variable("k", 0, 2);
  NodeRef x = flat_buffer(0, DType::F32, index_add(n, index_const(2)));
  NodeRef y = flat_buffer(1, DType::F32, n);
  NodeRef sum = make(Op::SumOver, {make(Op::Load, {x, index_add(i, k), always()}), k});
  NodeRef store = make(Op::StoreAdd, {y, i, always(), sum, i}, Arg(int64_t{1}));
  const WorkCount work = count_work({{x, y}, {n}, {{i, n}, {k, index_const(3)}}, {store}, {}, {}});
  CHECK(work.flops == 300);
  CHECK(work.bytes_read == 4 * 102 + 4 * 100);  // the windows, and what is added to
  CHECK(work.bytes_written == 4 * 100);
}

TEST_CASE("tiles are no memory traffic, and hold something else for each of their axes") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef i = make_variable("i", 0, 15), j = make_variable("j", 0, 9);
  NodeRef x = flat_buffer(0, DType::F32, 160), tile = flat_buffer(1, DType::F32, 10);
  NodeRef y = flat_buffer(2, DType::F32, 160);
  NodeRef first = make(Op::Exp, {make(Op::Load, {x, at(i, 10, j), always()})});
  NodeRef fill = make(Op::Store, {tile, j, always(), first, i, j}, Arg(int64_t{2}));
  NodeRef second = make(Op::Sqrt, {make(Op::Load, {tile, j, always()})});
  NodeRef store = make(Op::Store, {y, at(i, 10, j), always(), second, i, j}, Arg(int64_t{2}));
  const WorkCount work = count_work(
      {{x, tile, y}, {}, {{i, index_const(16)}, {j, index_const(10)}}, {fill, store}, {i}, {tile}});
  CHECK(work.flops == 2 * 160);
  CHECK(work.bytes_read == 640);
  CHECK(work.bytes_written == 640);
}

TEST_CASE("integers and positions are no float arithmetic") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef i = make_variable("i", 0, 3);
  NodeRef x = flat_buffer(0, DType::I32, 4), y = flat_buffer(1, DType::I32, 4);
  NodeRef loaded = make(Op::Load, {x, index_add(i, index_const(0)), always()});
  NodeRef store =
      make(Op::Store, {y, i, always(), make(Op::Mul, {loaded, loaded}), i}, Arg(int64_t{1}));
  const WorkCount work = count_work({{x, y}, {}, {{i, index_const(4)}}, {store}, {}, {}});
  CHECK(work.flops == 0);
  CHECK(work.operations == 1);
}
