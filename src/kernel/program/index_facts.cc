#include "kernel/program/index_facts.h"

namespace anneal {
namespace {

bool is_never_negative(const Instruction& each, const std::vector<bool>& known_values) {
  auto known = [&](size_t i) { return known_values[static_cast<size_t>(each.operands[i])]; };
  if (!is_index(each.dtype)) return false;
  switch (each.code) {
    case Code::Constant: return static_cast<int64_t>(each.bits) >= 0;
    case Code::Size:
    case Code::Cell: return true;
    case Code::Splat:
    case Code::Loop: return known(0);
    case Code::Ramp: return known(0) && known(1);
    case Code::Compute: break;
    default: return false;
  }
  switch (each.op) {
    case Op::Add:
    case Op::Mul:
    case Op::FloorDiv:
    case Op::Min: return known(0) && known(1);
    case Op::Max: return known(0) || known(1);
    case Op::Mod: return known(1);
    case Op::Where: return known(1) && known(2);
    default: return false;
  }
}

}  // namespace

std::vector<bool> find_never_negative(const Program& program) {
  std::vector<bool> known;
  known.reserve(program.code.size());
  for (const Instruction& each : program.code) known.push_back(is_never_negative(each, known));
  return known;
}

}  // namespace anneal
