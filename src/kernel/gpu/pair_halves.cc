#include "kernel/gpu/pair_halves.h"

#include "kernel/gpu/copier.h"
#include "kernel/gpu/place_locals.h"

namespace anneal {
namespace {

bool makes_half(const Copier& copier, size_t at) {
  if (at >= copier.size()) return false;
  const Instruction& each = copier.old(at);
  return each.code == Code::Compute && each.op == Op::Cast && each.dtype == DType::F16 &&
         each.width == 1 && copier.old(static_cast<size_t>(each.operands[0])).dtype == DType::F32;
}

// The cast at `at` and the one behind it, neither of which needs the other.
bool is_pair(const Copier& copier, size_t at) {
  return makes_half(copier, at) && makes_half(copier, at + 1) &&
         copier.old(at).lanes == copier.old(at + 1).lanes;
}

}  // namespace

void pair_halves(Program& program) {
  if (!program.matrix_unit || program.emulates_matrices) return;
  Copier copier(program);
  for (size_t i = 0; i < copier.size(); ++i) {
    if (!is_pair(copier, i)) {
      copier.copy(i);
      continue;
    }
    const uint16_t lanes = copier.old(i).lanes;
    Instruction pack{.code = Code::Pack, .dtype = DType::F32, .lanes = lanes, .width = 2};
    for (size_t k : {0, 1}) pack.operands[k] = copier.now(copier.old(i + k).operands[0]);
    const ValueId pair = copier.add(pack);
    const ValueId halves = copier.add({.code = Code::Compute,
                                       .op = Op::Cast,
                                       .dtype = DType::F16,
                                       .lanes = lanes,
                                       .operands = {pair, kNoValue, kNoValue, kNoValue},
                                       .width = 2});
    for (size_t k : {0, 1})
      copier.replace(i + k, copier.add({.code = Code::Element,
                                        .dtype = DType::F16,
                                        .lanes = lanes,
                                        .operands = {halves, kNoValue, kNoValue, kNoValue},
                                        .bits = k}));
    ++i;
  }
  copier.finish();
}

}  // namespace anneal
