// What the emission of every plan for groups of threads needs: numbers of threads, and elements and
// cells taken apart into axes.
#pragma once

#include <span>
#include <vector>

#include "ir/index.h"
#include "kernel/emit/emit.h"
#include "symbolic/simplify.h"

namespace anneal {

inline NodeRef ceil_div(NodeRef size, int64_t by) {
  return simplify(index_floor_div(index_add(size, index_const(by - 1)), index_const(by)));
}

inline NodeRef count_of(const Analysis& analysis, std::span<const size_t> axes) {
  NodeRef count = index_const(1);
  for (size_t axis : axes) count = index_mul(count, analysis.size(axis));
  return simplify(count);
}

class WorkgroupEmitter {
 public:
  WorkgroupEmitter(Emitter& emitter, Analysis& analysis, int threads)
      : emitter_(emitter), code_(emitter.code()), analysis_(analysis), threads_(threads) {
    const ValueId one = code_.index(1);
    lane_ = code_.ramp(code_.index(0), one, threads);
  }

 protected:
  using Assigned = Emitter::Assigned;

  ValueId div(ValueId a, ValueId b) { return code_.compute(Op::FloorDiv, DType::Index, {a, b}); }
  ValueId mod(ValueId a, ValueId b) { return code_.compute(Op::Mod, DType::Index, {a, b}); }
  ValueId scalar(NodeRef index) { return emitter_.value(index, 0); }

  // Elements of a thread: so far from its first one.
  struct Elements {
    ValueId first;
    std::vector<int64_t> distances;  // by copy
    int neighbours = 1;              // so many copies are next to each other
  };

  std::vector<ValueId> values_of(const Elements& elements) {
    std::vector<ValueId> values;
    for (int64_t distance : elements.distances)
      values.push_back(code_.add(elements.first, code_.index(distance)));
    return values;
  }

  // The axes of elements that are counted through all of them: their digits. Where the last axis is
  // made of whole stretches of neighbours, the other digits are those of the stretch's first.
  std::vector<Assigned> digits(std::span<const size_t> axes, const Elements& elements) {
    std::vector<Assigned> assigned;
    for (size_t axis : axes) assigned.push_back({axis, {}, {}, {}});
    if (axes.empty()) return assigned;
    const bool whole = analysis_.size_multiple(axes.back()) % elements.neighbours == 0;
    for (size_t copy = 0; copy < elements.distances.size(); ++copy) {
      const int64_t distance = elements.distances[copy];
      // What the digits are made of, and what the last one is further on.
      int64_t further = whole ? static_cast<int64_t>(copy) % elements.neighbours : 0;
      if (axes.size() == 1) further = distance;
      ValueId rest = code_.add(elements.first, code_.index(distance - further));
      for (size_t i = axes.size(); i-- > 0;) {
        ValueId size = scalar(analysis_.size(axes[i]));
        ValueId digit = i == 0 ? rest : mod(rest, size);
        if (i > 0) rest = div(rest, size);
        const int64_t offset = i + 1 == axes.size() ? further : 0;
        assigned[i].values.push_back(code_.add(digit, code_.index(offset)));
        assigned[i].bases.push_back(digit);
        assigned[i].offsets.push_back(offset);
      }
    }
    return assigned;
  }

  // The cell's number: other axes, rows, columns.
  struct Cell {
    ValueId rest, row, column;
  };
  Cell cell(bool others, NodeRef rows, NodeRef columns) {
    const ValueId number = code_.cell();
    ValueId column = mod(number, scalar(columns));
    ValueId row = div(number, scalar(columns)), rest = row;
    if (others) {
      row = mod(rest, scalar(rows));
      rest = div(rest, scalar(rows));
    }
    return {rest, row, column};
  }

  // Which elements there are, of `count` in pieces of `unit`; empty: all of them.
  std::vector<ValueId> existing(const Elements& elements, NodeRef count, int64_t unit) {
    std::vector<ValueId> exists;
    if (is_static(count) && static_value(count) % unit == 0) return exists;
    // Neighbours are there together where there are whole stretches of them.
    const std::vector<ValueId> values = values_of(elements);
    const bool whole = is_static(count) && static_value(count) % elements.neighbours == 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t first = i - i % static_cast<size_t>(elements.neighbours);
      exists.push_back(
          code_.compute(Op::Lt, DType::Bool, {values[whole ? first : i], scalar(count)}));
    }
    return exists;
  }

  Emitter& emitter_;
  CodeBuilder& code_;
  Analysis& analysis_;
  int threads_;
  ValueId lane_;
};

}  // namespace anneal
