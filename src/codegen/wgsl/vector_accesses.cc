#include "codegen/wgsl/vector_accesses.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace anneal::wgsl {
namespace {

constexpr int64_t kWidth = 4;

bool is_access(const Instruction& each) {
  return each.code == Code::Load || each.code == Code::Store;
}

bool is_control(Code code) {
  return code == Code::Loop || code == Code::EndLoop || code == Code::If || code == Code::EndIf ||
         code == Code::Barrier;
}

}  // namespace

VectorAccesses::VectorAccesses(const Program& program)
    : program_(program),
      group_of_(program.code.size(), -1),
      vectors_(program.buffers.size() + program.locals.size()) {
  size_t begin = 0;
  for (size_t i = 0; i <= program.code.size(); ++i) {
    if (i < program.code.size() && !is_control(program.code[i].code)) continue;
    find_in(begin, i);
    begin = i;
  }
  choose_buffers();
}

VectorAccesses::Place VectorAccesses::place_of(const Instruction& access) const {
  Place place{access.operands[0]};
  if (at(place.base).code == Code::Ramp) {
    place.step = at(place.base).operands[1];
    place.base = at(place.base).operands[0];
  }
  const Instruction& sum = at(place.base);
  if (sum.code == Code::Compute && sum.op == Op::Add) {
    const Instruction& last = at(sum.operands[1]);
    if (last.code == Code::Constant)
      return {sum.operands[0], place.step, static_cast<int64_t>(last.bits)};
  }
  if (sum.code == Code::Constant && place.step != kNoValue)
    return {kNoValue, place.step, static_cast<int64_t>(sum.bits)};
  return place;
}

void VectorAccesses::find_in(size_t begin, size_t end) {
  // Accesses alike but for their offset.
  using Kind = std::tuple<Code, uint64_t, ValueId, ValueId, ValueId>;  // buffer, base, step, mask
  std::map<Kind, std::map<int64_t, size_t>> found;
  std::map<uint64_t, bool> stored;
  for (size_t i = begin; i < end; ++i) {
    const Instruction& each = program_.code[i];
    if (!is_access(each)) continue;
    const Place place = place_of(each);
    stored[each.bits] = stored[each.bits] || each.code == Code::Store;
    const bool own = each.lanes > 1 && at(each.operands[0]).lanes > 1;
    const DType dtype = program_.buffer_dtype(each.bits);
    const bool local = each.bits >= program_.buffers.size();
    if (!own || byte_size(dtype) > 4 || (local && is_bool(dtype))) continue;
    found[{each.code, each.bits, place.base, place.step, each.operands[1]}].emplace(place.offset,
                                                                                    i);
  }
  for (const auto& [kind, members] : found) {
    const uint64_t buffer = std::get<1>(kind);
    const ValueId base = std::get<2>(kind), step = std::get<3>(kind);
    auto whole = [&](ValueId value) {
      return value == kNoValue ||
             is_multiple([&](ValueId each) -> const Instruction& { return at(each); }, value,
                         kWidth);
    };
    if (!whole(base) || !whole(step)) continue;
    for (const auto& [offset, first] : members) {
      if (offset % kWidth != 0) continue;
      VectorAccess group;
      group.base = base;
      group.step = step;
      group.offset = offset;
      group.first = group.last = first;
      bool all = true;
      for (int64_t i = 0; i < kWidth && all; ++i) {
        auto member = members.find(offset + i);
        all = member != members.end();
        if (!all) break;
        group.members[static_cast<size_t>(i)] = member->second;
        group.first = std::min(group.first, member->second);
        group.last = std::max(group.last, member->second);
      }
      if (!all || (stored[buffer] && !can_meet(group))) continue;
      for (size_t member : group.members) group_of_[member] = static_cast<int>(groups_.size());
      groups_.push_back(group);
    }
  }
}

// What is stored may be moved past accesses to other elements only.
bool VectorAccesses::can_meet(const VectorAccess& group) const {
  const uint64_t buffer = program_.code[group.first].bits;
  for (size_t i = group.first; i <= group.last; ++i) {
    const Instruction& each = program_.code[i];
    if (!is_access(each) || each.bits != buffer) continue;
    const Place place = place_of(each);
    if (place.base != group.base || place.step != group.step) return false;
  }
  return true;
}

void VectorAccesses::choose_buffers() {
  std::vector<bool> some(vectors_.size()), parts(vectors_.size());
  for (size_t i = 0; i < program_.code.size(); ++i) {
    const Instruction& each = program_.code[i];
    // Matrices are read from and written to plain elements.
    const bool matrix = each.code == Code::MatrixLeft || each.code == Code::MatrixRight ||
                        each.code == Code::MatrixStore;
    if (matrix) parts[each.bits] = true;
    if (!is_access(each)) continue;
    const bool whole = group_of_[i] >= 0;
    some[each.bits] = some[each.bits] || whole;
    // A part of a vector of the group's own memory can be stored by itself.
    const bool local = each.bits >= program_.buffers.size();
    parts[each.bits] = parts[each.bits] || (!whole && !local && each.code == Code::Store);
  }
  for (size_t i = 0; i < vectors_.size(); ++i) vectors_[i] = some[i] && !parts[i];
  for (size_t i = 0; i < program_.code.size(); ++i)
    if (is_access(program_.code[i]) && !vectors_[program_.code[i].bits]) group_of_[i] = -1;
}

}  // namespace anneal::wgsl
