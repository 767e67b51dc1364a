#include "kernel/gpu/unsigned_division.h"

#include <vector>

#include "kernel/program/index_facts.h"

namespace anneal {

void mark_unsigned_divisions(Program& program) {
  const std::vector<bool> never_negative = find_never_negative(program);
  for (Instruction& each : program.code) {
    const bool divides = each.op == Op::FloorDiv || each.op == Op::Mod;
    if (each.code != Code::Compute || !is_index(each.dtype) || !divides) continue;
    const Instruction& by = program.code[static_cast<size_t>(each.operands[1])];
    const bool positive = by.code == Code::Constant && static_cast<int64_t>(by.bits) > 0;
    each.is_unsigned = positive && never_negative[static_cast<size_t>(each.operands[0])];
  }
}

}  // namespace anneal
