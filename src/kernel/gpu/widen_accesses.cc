#include "kernel/gpu/widen_accesses.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/gpu/copier.h"

namespace anneal {
namespace {

constexpr int64_t kWidth = 4;

bool is_access(const Instruction& each) {
  return each.code == Code::Load || each.code == Code::Store;
}

bool ends_block(Code code) {
  return code == Code::Loop || code == Code::EndLoop || code == Code::If || code == Code::EndIf ||
         code == Code::Barrier;
}

// What one wide access is made of.
struct WideAccess {
  std::array<size_t, kWidth> members{};  // instructions, by place
  size_t first = 0, last = 0;            // of the members, in the order of the code
  size_t block = 0;                      // of straight code: where it begins
  // The place is the sum of these: a value, the thread's number times a step, and the offset.
  ValueId base = kNoValue, step = kNoValue;
  int64_t offset = 0;
};

class Finder {
 public:
  Finder(const Program& program, const ArgumentMemory& memory)
      : program_(program),
        memory_(memory),
        access_of_(program.code.size(), -1),
        vectors_(program.buffers.size() + program.locals.size()) {
    size_t begin = 0;
    for (size_t i = 0; i <= program.code.size(); ++i) {
      if (i < program.code.size() && !ends_block(program.code[i].code)) continue;
      find_in(begin, i);
      begin = i;
    }
    choose_buffers();
  }

  // Null where an access stays by itself.
  const WideAccess* of(size_t instruction) const {
    const int found = access_of_[instruction];
    return found < 0 ? nullptr : &accesses_[static_cast<size_t>(found)];
  }
  bool is_vectors(uint64_t buffer) const { return vectors_[buffer]; }

 private:
  struct Place {
    ValueId base = kNoValue, step = kNoValue;
    int64_t offset = 0;
  };

  const Instruction& at(ValueId value) const { return program_.code[static_cast<size_t>(value)]; }
  bool is_local(uint64_t buffer) const { return buffer >= program_.buffers.size(); }

  Place place_of(const Instruction& access) const {
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

  // Accesses alike but for their offset: code, buffer, base, step, condition.
  using Kind = std::tuple<Code, uint64_t, ValueId, ValueId, ValueId>;

  void find_in(size_t begin, size_t end) {
    std::map<Kind, std::map<int64_t, size_t>> found;
    std::map<uint64_t, bool> stored;
    for (size_t i = begin; i < end; ++i) {
      const Instruction& each = program_.code[i];
      if (!is_access(each)) continue;
      const Place place = place_of(each);
      stored[each.bits] = stored[each.bits] || each.code == Code::Store;
      const bool own = each.lanes > 1 && at(each.operands[0]).lanes > 1 && each.width == 1;
      const DType dtype = program_.buffer_dtype(each.bits);
      if (!own || byte_size(dtype) > 4 || (is_local(each.bits) && is_bool(dtype))) continue;
      if (each.offset != 0 || place.offset < INT32_MIN || place.offset > INT32_MAX) continue;
      found[{each.code, each.bits, place.base, place.step, each.operands[1]}].emplace(place.offset,
                                                                                      i);
    }
    for (const auto& [kind, members] : found) {
      const ValueId base = std::get<2>(kind), step = std::get<3>(kind);
      if (is_whole(base) && is_whole(step))
        find_among(members, {.block = begin, .base = base, .step = step},
                   stored[std::get<1>(kind)]);
    }
  }

  bool is_whole(ValueId value) const {
    return value == kNoValue ||
           is_multiple([this](ValueId each) -> const Instruction& { return at(each); }, value,
                       kWidth);
  }

  void find_among(const std::map<int64_t, size_t>& members, WideAccess access, bool is_stored) {
    for (const auto& [offset, first] : members) {
      if (offset % kWidth != 0) continue;
      access.offset = offset;
      access.first = access.last = first;
      bool all = true;
      for (int64_t i = 0; i < kWidth && all; ++i) {
        const auto member = members.find(offset + i);
        all = member != members.end();
        if (!all) break;
        access.members[static_cast<size_t>(i)] = member->second;
        access.first = std::min(access.first, member->second);
        access.last = std::max(access.last, member->second);
      }
      if (!all || (is_stored && !can_meet(access))) continue;
      for (size_t member : access.members) access_of_[member] = static_cast<int>(accesses_.size());
      accesses_.push_back(access);
    }
  }

  // What is stored may be moved past accesses to other elements only.
  bool can_meet(const WideAccess& access) const {
    const uint64_t buffer = program_.code[access.first].bits;
    for (size_t i = access.first; i <= access.last; ++i) {
      const Instruction& each = program_.code[i];
      if (!is_access(each) || each.bits != buffer) continue;
      const Place place = place_of(each);
      if (place.base != access.base || place.step != access.step) return false;
    }
    return true;
  }

  void choose_buffers() {
    std::vector<bool> some(vectors_.size()), parts(vectors_.size());
    for (size_t i = 0; i < program_.code.size(); ++i) {
      const Instruction& each = program_.code[i];
      // Matrices are read from and written to plain elements.
      const bool matrix = each.code == Code::MatrixLeft || each.code == Code::MatrixRight ||
                          each.code == Code::MatrixStore;
      if (matrix) parts[each.bits] = true;
      if (!is_access(each)) continue;
      const bool whole = access_of_[i] >= 0;
      some[each.bits] = some[each.bits] || whole;
      // A part of a vector of the group's own memory can be stored by itself.
      parts[each.bits] =
          parts[each.bits] || (!whole && !is_local(each.bits) && each.code == Code::Store);
    }
    for (size_t i = 0; i < vectors_.size(); ++i) vectors_[i] = some[i] && !parts[i];
    const std::vector<bool> alone = vectors_;
    for (size_t i = 0; i < memory_.same_as.size(); ++i)
      for (size_t k = 0; k < memory_.same_as.size(); ++k)
        if (first_of(i) == first_of(k) && !alone[k]) vectors_[i] = false;
    for (size_t i = 0; i < program_.code.size(); ++i)
      if (is_access(program_.code[i]) && !vectors_[program_.code[i].bits]) access_of_[i] = -1;
  }

  size_t first_of(size_t buffer) const {
    const int first = memory_.same_as[buffer];
    return first < 0 ? buffer : static_cast<size_t>(first);
  }

  const Program& program_;
  const ArgumentMemory& memory_;
  std::vector<WideAccess> accesses_;
  std::vector<int> access_of_;  // by instruction
  std::vector<bool> vectors_;   // by buffer
};

class Writer {
 public:
  Writer(Program& program, const Finder& finder, uint64_t buffers)
      : copier_(program), finder_(finder), buffers_(buffers) {}

  void run() {
    for (size_t i = 0; i < copier_.size(); ++i) {
      const WideAccess* access = finder_.of(i);
      const Instruction& each = copier_.old(i);
      if (!access)
        copy(i);
      else if (each.code == Code::Load && i == access->first)
        load(*access);
      else if (each.code == Code::Store && i == access->last)
        store(*access);
    }
    copier_.finish();
  }

 private:
  // Stores at distances of whole vectors share the rest of their place.
  void copy(size_t i) {
    copier_.copy(i);
    const Instruction& each = copier_.old(i);
    const bool part = each.code == Code::Store && each.bits >= buffers_ &&
                      finder_.is_vectors(each.bits) && each.offset == 0;
    if (!part) return;
    const Instruction& sum = old(each.operands[0]);
    if (sum.lanes == 1 || sum.code != Code::Compute || sum.op != Op::Add) return;
    const Instruction& distance = old(sum.operands[1]);
    const auto further = static_cast<int64_t>(distance.bits);
    if (distance.code != Code::Constant || further < 0 || further > INT32_MAX ||
        further % kWidth != 0)
      return;
    Instruction& now = copier_.last();
    now.operands[0] = copier_.now(sum.operands[0]);
    now.offset = static_cast<int32_t>(further);
  }

  const Instruction& old(ValueId value) const { return copier_.old(static_cast<size_t>(value)); }

  // The place without the offset.
  ValueId place(const WideAccess& access) {
    if (access.step == kNoValue) return copier_.now(access.base);
    if (access.block != block_) places_.clear();
    block_ = access.block;
    const auto known = places_.find({access.base, access.step});
    if (known != places_.end()) return known->second;
    ValueId base = copier_.now(access.base);
    if (base == kNoValue) base = copier_.add({.code = Code::Constant, .dtype = DType::Index});
    const ValueId ramp =
        copier_.add({.code = Code::Ramp,
                     .dtype = DType::Index,
                     .lanes = copier_.old(access.first).lanes,
                     .operands = {base, copier_.now(access.step), kNoValue, kNoValue}});
    return places_[{access.base, access.step}] = ramp;
  }

  Instruction wide(const WideAccess& access, ValueId at) const {
    Instruction instruction = copier_.old(access.first);
    instruction.operands = {at, copier_.now(instruction.operands[1]), kNoValue, kNoValue};
    instruction.width = kWidth;
    instruction.offset = static_cast<int32_t>(access.offset);
    return instruction;
  }

  void load(const WideAccess& access) {
    const Instruction load = wide(access, place(access));
    const ValueId loaded = copier_.add(load);
    for (size_t i = 0; i < access.members.size(); ++i)
      copier_.replace(access.members[i],
                      copier_.add({.code = Code::Element,
                                   .dtype = load.dtype,
                                   .lanes = load.lanes,
                                   .operands = {loaded, kNoValue, kNoValue, kNoValue},
                                   .bits = i}));
  }

  void store(const WideAccess& access) {
    const ValueId at = place(access);
    Instruction store = wide(access, at);
    Instruction pack{.code = Code::Pack, .dtype = store.dtype, .lanes = store.lanes};
    pack.width = kWidth;
    for (size_t i = 0; i < access.members.size(); ++i)
      pack.operands[i] = copier_.now(copier_.old(access.members[i]).operands[2]);
    store.operands[2] = copier_.add(pack);
    copier_.add(store);
  }

  Copier copier_;
  const Finder& finder_;
  uint64_t buffers_;
  std::map<std::pair<ValueId, ValueId>, ValueId> places_;  // of a block, by base and step
  size_t block_ = SIZE_MAX;
};

}  // namespace

void widen_accesses(Program& program, const ArgumentMemory& memory) {
  const Program before = program;
  const Finder finder(before, memory);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (finder.is_vectors(i)) program.buffers[i].width = kWidth;
  for (size_t i = 0; i < program.locals.size(); ++i)
    if (finder.is_vectors(program.buffers.size() + i)) program.locals[i].width = kWidth;
  Writer(program, finder, program.buffers.size()).run();
}

}  // namespace anneal
