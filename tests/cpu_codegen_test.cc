// Machine code of hand-written Programs against the meaning of every op.
#include <doctest/doctest.h>

#include "codegen/llvm/compile.h"
#include "program_builder.h"
#include "runtime/cpu/kernel_cache.h"

using namespace anneal;
using namespace anneal::testing;

TEST_CASE("cpu codegen: a program that doubles what it reads") {
  ProgramBuilder b;
  const uint64_t from = b.buffer(DType::F32), to = b.buffer(DType::F32, true);
  const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(4)});
  const ValueId value = b.load(from, place, 4);
  b.store(to, place, b.compute(Op::Add, {value, value}));
  REQUIRE(verify(b.program) == "");
  const KernelFunction function = kernel_cache().compile(b.program);
  std::vector<float> source{1, 2, 3, 4, 5, 6, 7, 8}, target(8);
  void* const buffers[] = {source.data(), target.data()};
  function(buffers, nullptr, 0, 2, nullptr);
  CHECK(target == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
}
