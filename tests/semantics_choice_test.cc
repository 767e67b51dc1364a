// The meaning of ops that choose or mix bits: where and threefry.
#include <cmath>

#include "interpreter_bench.h"
#include "ir/semantics.h"

using namespace anneal;
using namespace anneal::testing;

TEST_CASE("semantics: where picks a whole value") {
  Bench bench;
  NodeRef chooser = bench.input(DType::Bool, {4}, {1, 0, 1, 0});
  for (DType dtype : {DType::F32, DType::I8, DType::Bool}) {
    NodeRef a = bench.input(dtype, {4}, {1, 1, 0, 0}), b = bench.input(dtype, {4}, {0, 0, 1, 1});
    CHECK(bench.numbers(make(Op::Where, {chooser, a, b})) == std::vector<double>{1, 0, 0, 1});
  }
  // A NaN that is not chosen leaves no trace, and one that is chosen stays.
  NodeRef nans = bench.input(DType::F32, {4}, {kNan, kNan, kNan, kNan});
  NodeRef ones = bench.input(DType::F32, {4}, {1, 1, 1, 1});
  const std::vector<double> mixed = bench.numbers(make(Op::Where, {chooser, nans, ones}));
  CHECK(std::isnan(mixed[0]));
  CHECK(mixed[1] == 1);
}

TEST_CASE("semantics: threefry gives the published words") {
  // Random123's kat_vectors, threefry2x32 with 20 rounds.
  CHECK(threefry(0, 0, 0, 0) == 0x6b200159u);
  CHECK(threefry(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff) == 0x1cb996fcu);
  CHECK(threefry(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344) == 0xc4923a9cu);
  Bench bench;
  auto words = [&](double first, double second) {
    return bench.input(DType::U32, {2}, {first, second});
  };
  NodeRef node = make(Op::Threefry, {words(0, 0x243f6a88), words(0, 0x85a308d3),
                                     words(0, 0x13198a2e), words(0, 0x03707344)});
  CHECK(bench.numbers(node) == std::vector<double>{0x6b200159, 0xc4923a9c});
}
