// The interpreter of kernel bodies: what a few bodies written by hand compute.
#include "body_interpreter.h"

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/index.h"

using namespace anneal;

namespace {

Value values(std::initializer_list<double> numbers, DType dtype = DType::F32) {
  Value value{dtype, {static_cast<int64_t>(numbers.size())}, {}};
  for (double number : numbers) value.payload.push_back(Scalar::of(dtype, number).bits());
  return value;
}

NodeRef flat_buffer(int64_t slot, DType dtype, int64_t elements) {
  return make_buffer("b", slot, dtype, std::vector{index_const(elements)});
}

NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }

}  // namespace

TEST_CASE("a softmax without its exponentials: a reduction of a reduction") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef i = make_variable("i", 0, 1), j = make_variable("j", 0, 2), k = make_variable("k", 0, 2);
  NodeRef three = index_const(3), in = flat_buffer(0, DType::F32, 6);
  NodeRef out = flat_buffer(1, DType::F32, 6);
  auto load = [&](NodeRef column) {
    return make(Op::Load, {in, index_add(index_mul(i, three), column), always()});
  };
  NodeRef largest = make(Op::MaxOver, {load(k), k});
  NodeRef distance = make(Op::Add, {largest, make(Op::Neg, {load(k)})});
  NodeRef total = make(Op::SumOver, {distance, k});
  NodeRef result = make(Op::Add, {load(j), total});
  NodeRef store = make(Op::Store, {out, index_add(index_mul(i, three), j), always(), result, i, j},
                       Arg(int64_t{2}));
  KernelBody body{{in, out}, {}, {{i, index_const(2)}, {j, three}, {k, three}}, {store}, {}, {}};
  Value x = values({1, 5, 2, -1, -1, 0}), y = values({0, 0, 0, 0, 0, 0});
  run_body(body, std::vector{&x, &y});
  const double expected[] = {8, 12, 9, 1, 1, 2};  // (4 + 3) and (1 + 1), added to each element
  for (int64_t at = 0; at < 6; ++at) CHECK(y.as_double(at) == expected[at]);
}

TEST_CASE("stores that add run in order, and conditions guard what they touch") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef n = make_variable("n", 0, 8), t = make_variable("t", 0, 7);
  NodeRef place = flat_buffer(0, DType::I32, 4), out = flat_buffer(1, DType::F32, 3);
  NodeRef at = make(Op::AsIndex, {make(Op::Load, {place, t, always()})});
  NodeRef inside = make(Op::Lt, {at, index_const(3)});
  NodeRef one = make_const(DType::F32, 1);
  NodeRef store = make(Op::StoreAdd, {out, at, inside, one, t}, Arg(int64_t{0}));
  KernelBody body{{place, out}, {n}, {{t, n}}, {store}, {}, {}};
  Value places = values({2, 7, 0, 2}, DType::I32), y = values({10, 20, 30});
  run_body(body, std::vector{&places, &y}, [](NodeRef) { return 4; });
  CHECK(y.as_double(0) == 11);
  CHECK(y.as_double(1) == 20);
  CHECK(y.as_double(2) == 32);
  Value again = values({1, 2, 3});
  run_body(body, std::vector{&places, &again}, [](NodeRef) { return 0; });
  CHECK(again.as_double(2) == 3);
  NodeRef wild = make(Op::StoreAdd, {out, at, always(), one, t}, Arg(int64_t{0}));
  KernelBody broken{{place, out}, {n}, {{t, n}}, {wild}, {}, {}};
  CHECK_THROWS_AS(run_body(broken, std::vector{&places, &y}, [](NodeRef) { return 4; }),
                  InternalError);
}
