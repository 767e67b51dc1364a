// Elements that lie across their results, turned in the memory of a group.
#include <optional>

#include "kernel/emit/emit_workgroup.h"
#include "kernel/emit/workgroup_emitter.h"

namespace anneal {
namespace {

class SquaresEmitter : WorkgroupEmitter {
 public:
  SquaresEmitter(Emitter& emitter, Analysis& analysis, const TransposeTile& plan)
      : WorkgroupEmitter(emitter, analysis, TransposeTile::kThreads), plan_(plan) {}

  NodeRef run() {
    NodeRef along = analysis_.size(plan_.along), across = analysis_.size(plan_.across);
    NodeRef columns = ceil_div(along, kSide), rows = ceil_div(across, kSide);
    const Cell cell = this->cell(!plan_.others.empty(), rows, columns);
    const std::vector<Assigned> others = digits(plan_.others, {cell.rest, {0}});
    Emitter::Assignment outside(emitter_, others);
    along_begin_ = code_.mul(cell.column, code_.index(kSide));
    across_begin_ = code_.mul(cell.row, code_.index(kSide));
    inner_ = mod(lane_, code_.index(kSide));
    outer_ = div(lane_, code_.index(kSide));
    std::vector<uint64_t> buffers;
    for (NodeRef load : plan_.turned)
      buffers.push_back(code_.add_local(load->dtype, kSide * kStride));

    {  // As they lie: threads that are neighbours go across.
      const Bound bound(*this, plan_.across, plan_.along);
      for (size_t i = 0; i < plan_.turned.size(); ++i)
        for (Coordinate at : emitter_.coordinates(bound.axes())) {
          CodeBuilder::Access access;
          access.buffer = buffers[i];
          access.lanes = threads_;
          access.place = place(outer_, inner_, at);
          code_.store(access, emitter_.value(plan_.turned[i], at));
        }
    }
    {  // As results do.
      const Bound bound(*this, plan_.along, plan_.across);
      for (size_t i = 0; i < plan_.turned.size(); ++i) {
        Emitter::Layout layout;
        layout.buffer = buffers[i];
        layout.lanes = threads_;
        layout.place = [this](Coordinate at) { return turned_place(at); };
        emitter_.stage(plan_.turned[i], layout);
      }
      emitter_.stores(plan_.stores, {});
      for (NodeRef load : plan_.turned) emitter_.unstage(load);
    }
    NodeRef cells = index_mul(index_mul(count_of(analysis_, plan_.others), rows), columns);
    return simplify(cells);
  }

 private:
  static constexpr int kSide = TransposeTile::kSide;
  static constexpr int kStride = TransposeTile::kStride;
  static constexpr int kRows = TransposeTile::kThreads / kSide;  // that threads have at once

  // Threads along one axis of the square, and some rows of it each.
  class Bound {
   public:
    Bound(SquaresEmitter& emitter, size_t inner, size_t outer) : inner_(inner), outer_(outer) {
      auto begin = [&](size_t axis) {
        return axis == emitter.plan_.along ? emitter.along_begin_ : emitter.across_begin_;
      };
      CodeBuilder& code = emitter.code_;
      ValueId first = code.add(begin(outer), emitter.outer_);
      ValueId beside = code.add(begin(inner), emitter.inner_);
      Assigned within{inner, {}, {}, {}}, rows{outer, {}, {}, {}};
      std::vector<ValueId> exists;
      for (int row = 0; row < kSide; row += kRows) {
        ValueId value = code.add(first, code.index(row));
        within.values.push_back(beside), within.bases.push_back(beside);
        within.offsets.push_back(0);
        rows.values.push_back(value), rows.bases.push_back(first), rows.offsets.push_back(row);
        exists.push_back(
            code.both(emitter.is_within(inner, beside), emitter.is_within(outer, value)));
      }
      if (exists[0] == kNoValue) exists.clear();
      const Assigned assigned[] = {within, rows};
      assignment_.emplace(emitter.emitter_, assigned, exists);
    }
    AxisSet axes() const {
      AxisSet both;
      both.add(inner_);
      both.add(outer_);
      return both;
    }

   private:
    size_t inner_, outer_;
    std::optional<Emitter::Assignment> assignment_;
  };

  ValueId is_within(size_t axis, ValueId value) {
    NodeRef size = analysis_.size(axis);
    if (is_static(size) && static_value(size) % kSide == 0) return kNoValue;
    return code_.compute(Op::Lt, DType::Bool, {value, scalar(size)});
  }

  // In the square: a row for each element along, elements across in it.
  ValueId place(ValueId along, ValueId across, Coordinate at) {
    const int64_t row = int64_t{emitter_.copy_of(plan_.along, at)} * kRows;
    const ValueId of_row = code_.index(row * kStride);
    return code_.add(code_.add(code_.mul(along, code_.index(kStride)), across), of_row);
  }
  ValueId turned_place(Coordinate at) {
    const int64_t row = int64_t{emitter_.copy_of(plan_.across, at)} * kRows;
    const ValueId of_row = code_.index(row);
    return code_.add(code_.add(code_.mul(inner_, code_.index(kStride)), outer_), of_row);
  }

  const TransposeTile& plan_;
  ValueId along_begin_ = kNoValue, across_begin_ = kNoValue, inner_ = kNoValue, outer_ = kNoValue;
};

}  // namespace

NodeRef emit_squares(Emitter& emitter, Analysis& analysis, const TransposeTile& plan) {
  return SquaresEmitter(emitter, analysis, plan).run();
}

}  // namespace anneal
