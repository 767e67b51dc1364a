#include "kernel/gpu/thread_accesses.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace anneal {
namespace {

bool is_access(const Instruction& each) {
  return each.code == Code::Load || each.code == Code::Store;
}

bool is_in_stretch(const Instruction& constant, int64_t round, int64_t neighbours) {
  return static_cast<int64_t>(constant.bits) % round < neighbours;
}

}  // namespace

std::vector<ThreadAccesses::Touched> ThreadAccesses::of(const Instruction& each) const {
  switch (each.code) {
    case Code::Load:
    case Code::MatrixLeft:
    case Code::MatrixRight: return {{each.bits, false}};
    case Code::Store:
    case Code::MatrixStore: return {{each.bits, true}};
    case Code::MatrixMultiplyAdd:
      return {{at(each.operands[0]).bits, false}, {at(each.operands[1]).bits, false}};
    default: return {};
  }
}

bool ThreadAccesses::is_multiple(ValueId value, int64_t of) const {
  return anneal::is_multiple([this](ValueId each) -> const Instruction& { return at(each); }, value,
                             of);
}

bool ThreadAccesses::is_own_place(const Instruction& access, int64_t neighbours) const {
  if (access.lanes == 1 || access.width != 1 || access.offset != 0) return false;
  ValueId place = access.operands[0];
  const int64_t round = neighbours * access.lanes;
  if (neighbours == 1) return at(place).lanes == 1 && is_multiple(place, round);
  if (at(place).code != Code::Ramp) return false;
  const Instruction& step = at(at(place).operands[1]);
  if (step.code != Code::Constant || static_cast<int64_t>(step.bits) != neighbours) return false;
  place = at(place).operands[0];
  if (at(place).code == Code::Constant) return is_in_stretch(at(place), round, neighbours);
  const Instruction& sum = at(place);
  const bool offset =
      sum.code == Code::Compute && sum.op == Op::Add && at(sum.operands[1]).code == Code::Constant;
  if (!offset) return is_multiple(place, round);
  return is_multiple(sum.operands[0], round) &&
         is_in_stretch(at(sum.operands[1]), round, neighbours);
}

bool ThreadAccesses::has_own_elements(uint64_t buffer, int64_t neighbours) const {
  return std::ranges::all_of(program_.code, [&](const Instruction& each) {
    if (is_access(each)) return each.bits != buffer || is_own_place(each, neighbours);
    return std::ranges::none_of(of(each),
                                [&](const Touched& touched) { return touched.buffer == buffer; });
  });
}

bool ThreadAccesses::is_in_place(uint64_t buffer) const {
  using Place = std::tuple<ValueId, int, int, int>;
  auto place_of = [](const Instruction& each) {
    return Place{each.operands[0], each.offset, each.lanes, each.width};
  };
  std::set<Place> stored;
  for (const Instruction& each : program_.code)
    if (each.code == Code::Store && each.bits == buffer) stored.insert(place_of(each));
  return std::ranges::all_of(program_.code, [&](const Instruction& each) {
    return each.code != Code::Load || each.bits != buffer || stored.empty() ||
           (each.lanes > 1 && stored.contains(place_of(each)));
  });
}

}  // namespace anneal
