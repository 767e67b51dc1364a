#include "kernel/group.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "kernel/group_emitter.h"

namespace anneal {
namespace {

// ---- elements

class ElementsEmitter : GroupEmitter {
 public:
  ElementsEmitter(Emitter& emitter, Analysis& analysis, const GroupElements& plan)
      : GroupEmitter(emitter, analysis, plan.threads), plan_(plan) {}

  NodeRef run() {
    const int64_t stretch = int64_t{plan_.threads} * plan_.neighbours,
                  cell = stretch * plan_.copies;
    NodeRef count = count_of(analysis_, plan_.axes);
    ValueId first = code_.add(code_.mul(code_.cell(), code_.index(cell)),
                              code_.mul(lane_, code_.index(plan_.neighbours)));
    std::vector<int64_t> distances;
    for (int copy = 0; copy < plan_.copies; ++copy)
      for (int i = 0; i < plan_.neighbours; ++i) distances.push_back(copy * stretch + i);
    const Elements elements{first, distances, plan_.neighbours};
    const std::vector<Assigned> assigned = digits(plan_.axes, elements);
    Emitter::Assignment assignment(emitter_, assigned, existing(elements, count, cell));
    emitter_.stores(plan_.stores, {});
    return ceil_div(count, cell);
  }

 private:
  const GroupElements& plan_;
};

// ---- products

constexpr int kThreadsAtOnce = 32, kThreadsAcross = 8;

class GroupProductEmitter : GroupEmitter {
 public:
  GroupProductEmitter(Emitter& emitter, Analysis& analysis, const GroupProduct& plan)
      : GroupEmitter(emitter, analysis, plan.threads()), plan_(plan) {}

  NodeRef run() {
    rows_ = count_of(analysis_, plan_.rows.axes);
    columns_ = count_of(analysis_, plan_.columns.axes);
    terms_ = count_of(analysis_, plan_.summed);
    NodeRef down = ceil_div(rows_, plan_.rows.elements());
    NodeRef across = ceil_div(columns_, plan_.columns.elements());
    const Cell cell = this->cell(!plan_.others.empty(), down, across);
    const std::vector<Assigned> others = digits(plan_.others, {cell.rest, {0}});
    Emitter::Assignment outside(emitter_, others);

    row_begin_ = code_.mul(cell.row, code_.index(plan_.rows.elements()));
    column_begin_ = code_.mul(cell.column, code_.index(plan_.columns.elements()));
    place_threads();
    for (const GroupOperand& operand : plan_.staged) {
      const GroupSide& side = side_of(operand);
      strides_.push_back(side.elements() + side.neighbours);  // so that rows begin in other banks
      buffers_.push_back(code_.add_local(operand.node->dtype, strides_.back() * plan_.depth));
    }
    // Sums go through the whole product before anything is stored. Rows and columns are bound
    // while terms are added and at the end, and to other elements while operands are copied.
    Emitter::State state;
    const int64_t copies = int64_t{plan_.rows.copies} * plan_.columns.copies;
    for (NodeRef sum : plan_.sums)
      state.insert(state.end(), static_cast<size_t>(copies), emitter_.start_value(sum, threads_));
    const TermRange range = terms_that_count();
    if (plan_.staged.empty()) {
      add_terms(state, range);
    } else {
      // What the next block needs is on its way while this one is added up.
      const auto sums = static_cast<std::ptrdiff_t>(state.size());
      read_block(range.begin, state);
      ValueId begin = code_.open_loop(range.begin, range.end, code_.index(plan_.terms_of_round()),
                                      may_be_empty());
      Emitter::State carried;
      for (ValueId start : state) carried.push_back(code_.carry(start));
      Emitter::State next = carried;
      for (int64_t block = 0; block < plan_.blocks; ++block) {
        ValueId here = code_.add(begin, code_.index(block * plan_.depth));
        ValueId further = code_.add(begin, code_.index((block + 1) * plan_.depth));
        // Behind the last block it is read again rather than nothing: that takes no conditions.
        if (block + 1 == plan_.blocks && only_whole_blocks())
          further = code_.min(further, code_.index(static_value(terms_) - plan_.depth));
        write_block(here, std::span(next).subspan(static_cast<size_t>(sums)));
        Emitter::State totals(next.begin(), next.begin() + sums), ahead;
        read_block(further, ahead);
        add_terms(totals, {here, kNoValue});
        next = std::move(totals);
        next.insert(next.end(), ahead.begin(), ahead.end());
      }
      std::vector<std::pair<ValueId, ValueId>> pairs;
      for (size_t i = 0; i < state.size(); ++i) pairs.emplace_back(carried[i], next[i]);
      code_.close_loop(pairs);
      state.assign(carried.begin(), carried.begin() + sums);
    }
    Side on_rows = side(plan_.rows, row_begin_, down_, rows_);
    Emitter::Assignment bound_rows(emitter_, on_rows.axes, on_rows.exists);
    Side on_columns = side(plan_.columns, column_begin_, across_, columns_);
    Emitter::Assignment bound_columns(emitter_, on_columns.axes, on_columns.exists);
    const std::vector<Emitter::Accumulator> each = accumulators();
    for (size_t i = 0; i < each.size(); ++i)
      emitter_.remember(each[i].reduction, each[i].at,
                        emitter_.or_empty(each[i].reduction, state[i]));
    emitter_.stores(plan_.stores, {});

    NodeRef cells = index_mul(index_mul(count_of(analysis_, plan_.others), down), across);
    return simplify(cells);
  }

 private:
  struct Side {
    std::vector<Assigned> axes;
    std::vector<ValueId> exists;
  };

  const GroupSide& side_of(const GroupOperand& operand) const {
    return operand.of_rows ? plan_.rows : plan_.columns;
  }

  // Threads that read fast memory together, kThreadsAtOnce of them, are a rectangle, too, which
  // takes less of both sides than a row does. Drivers gain by it with short blocks only.
  void place_threads() {
    const int across = plan_.columns.threads, tall = kThreadsAtOnce / kThreadsAcross;
    if (plan_.blocks == 1 || across % kThreadsAcross != 0 || plan_.rows.threads % tall != 0) {
      across_ = mod(lane_, code_.index(across));
      down_ = div(lane_, code_.index(across));
      return;
    }
    ValueId rectangle = div(lane_, code_.index(kThreadsAtOnce)),
            inside = mod(lane_, code_.index(kThreadsAtOnce));
    ValueId beside = code_.index(across / kThreadsAcross), wide = code_.index(kThreadsAcross);
    across_ = code_.add(code_.mul(mod(rectangle, beside), wide), mod(inside, wide));
    down_ = code_.add(code_.mul(div(rectangle, beside), code_.index(tall)), div(inside, wide));
  }

  // Of the sum; whole rounds of it.
  struct TermRange {
    ValueId begin, end;  // no end: one block
  };
  TermRange terms_that_count() {
    TermRange range{code_.index(0), scalar(terms_)};
    const int64_t round = plan_.terms_of_round();
    const ValueId last_round = code_.index(only_whole_blocks() ? static_value(terms_) - round : 0);
    auto larger = [&](ValueId a, ValueId b) {
      return code_.compute(Op::Max, DType::Index, {a, b});
    };
    auto round_of = [&](ValueId term) {
      return code_.mul(div(term, code_.index(round)), code_.index(round));
    };
    auto first = [&](GroupBound::Axis axis) {
      return axis == GroupBound::Axis::Row ? row_begin_ : column_begin_;
    };
    auto last = [&](GroupBound::Axis axis) {
      const bool row = axis == GroupBound::Axis::Row;
      return code_.add(first(axis), code_.index((row ? plan_.rows : plan_.columns).elements() - 1));
    };
    for (const GroupBound& bound : plan_.bounds) {
      if (bound.low == GroupBound::Axis::Term) {
        ValueId most = larger(code_.add(last(bound.high), code_.index(bound.by)), code_.index(0));
        range.end = code_.min(range.end, code_.add(round_of(most), code_.index(round)));
      } else if (bound.high == GroupBound::Axis::Term) {
        ValueId least = code_.add(first(bound.low), code_.index(-bound.by));
        ValueId begin = round_of(larger(least, code_.index(0)));
        range.begin =
            larger(range.begin, only_whole_blocks() ? code_.min(begin, last_round) : begin);
      } else {
        ValueId any =
            code_.compute(Op::Le, DType::Bool,
                          {first(bound.low), code_.add(last(bound.high), code_.index(bound.by))});
        range.end = code_.compute(Op::Where, DType::Index, {any, range.end, code_.index(0)});
      }
    }
    return range;
  }

  bool may_be_empty() const {
    if (!plan_.bounds.empty()) return true;
    for (size_t axis : plan_.summed)
      if (analysis_.may_be_empty(axis)) return true;
    return false;
  }

  // How far copies are from a thread's first element.
  static std::vector<int64_t> distances(const GroupSide& side) {
    std::vector<int64_t> result;
    for (int copy = 0; copy < side.copies; ++copy)
      result.push_back(int64_t{copy / side.neighbours} * side.threads * side.neighbours +
                       copy % side.neighbours);
    return result;
  }

  ValueId first_in_tile(const GroupSide& side, ValueId thread) {
    return code_.mul(thread, code_.index(side.neighbours));
  }

  Side side(const GroupSide& side, ValueId begin, ValueId thread, NodeRef count) {
    ValueId first = code_.add(begin, first_in_tile(side, thread));
    const Elements elements{first, distances(side), side.neighbours};
    return {digits(side.axes, elements), existing(elements, count, side.elements())};
  }

  std::vector<Emitter::Accumulator> accumulators() {
    AxisSet sides;
    for (const GroupSide* side : {&plan_.rows, &plan_.columns})
      for (size_t axis : side->axes) sides.add(axis);
    // Row by row, those of different stretches in turns: so compilers find registers for them that
    // can be read at once.
    auto turn = [&](Coordinate at) {
      const int row = emitter_.copy_of(plan_.rows.axes.back(), at), wide = plan_.rows.neighbours;
      return std::tuple(row % wide, row / wide, emitter_.copy_of(plan_.columns.axes.back(), at));
    };
    std::vector<Coordinate> all = emitter_.coordinates(sides);
    std::ranges::sort(all, {}, turn);
    std::vector<Emitter::Accumulator> result;
    for (NodeRef sum : plan_.sums)
      for (Coordinate at : all) result.push_back({sum, at});
    return result;
  }

  // Threads take stretches of neighbours along the side, one term of the sum each, or along the sum
  // of one element, in turns until all of the block is copied.
  struct Task {
    ValueId term, in_tile;
    ValueId exists = kNoValue;  // where some threads have none
  };
  static int side_elements(const GroupOperand& operand, const GroupSide& side) {
    return operand.terms_at_once > 1 ? 1 : side.neighbours;
  }
  std::vector<Task> tasks_of(const GroupOperand& operand) {
    const GroupSide& side = side_of(operand);
    const int wide = side_elements(operand, side);
    const int64_t stretches = side.elements() / wide, deep = plan_.depth / operand.terms_at_once,
                  all = stretches * deep;
    std::vector<Task> tasks;
    for (int64_t done = 0; done < all; done += threads_) {
      ValueId number = code_.add(lane_, code_.index(done));
      ValueId inner = code_.index(operand.along_sum ? deep : stretches);
      ValueId low = mod(number, inner), high = div(number, inner);
      Task task{code_.mul(operand.along_sum ? low : high, code_.index(operand.terms_at_once)),
                code_.mul(operand.along_sum ? high : low, code_.index(wide))};
      if (done + threads_ > all)
        task.exists = code_.compute(Op::Lt, DType::Bool, {number, code_.index(all)});
      tasks.push_back(task);
    }
    return tasks;
  }

  bool only_whole_blocks() const {
    return is_static(terms_) && static_value(terms_) > 0 && static_value(terms_) % plan_.depth == 0;
  }

  static std::vector<int64_t> count_to(int64_t end) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < end; ++i) numbers.push_back(i);
    return numbers;
  }

  // Elements of an operand that a thread copies of the block that begins at a term: with their axes
  // bound, and whether they exist.
  void copied_elements(const GroupOperand& operand, const Task& task, ValueId begin,
                       const std::function<void(Coordinate at, ValueId exists)>& element) {
    const GroupSide& side = side_of(operand);
    const int wide = side_elements(operand, side), deep = operand.terms_at_once;
    ValueId first = code_.add(operand.of_rows ? row_begin_ : column_begin_, task.in_tile);
    const Elements elements{first, count_to(wide), wide};
    const std::vector<Assigned> along = digits(side.axes, elements);
    std::vector<ValueId> exists =
        existing(elements, operand.of_rows ? rows_ : columns_, side.elements());
    const Elements terms{code_.add(begin, task.term), count_to(deep), deep};
    const std::vector<Assigned> summed = digits(plan_.summed, terms);
    // One block beyond the last may be read, too, of which nothing exists. Terms that are read at
    // once exist together.
    ValueId there = task.exists;
    if (!only_whole_blocks())
      there = code_.both(there, code_.compute(Op::Lt, DType::Bool, {terms.first, scalar(terms_)}));
    if (there != kNoValue) {
      exists.resize(elements.distances.size(), kNoValue);
      for (ValueId& each : exists) each = code_.both(each, there);
    }
    const std::vector<ValueId> all_there(there == kNoValue ? 0 : terms.distances.size(), there);
    Emitter::Assignment bound_side(emitter_, along, exists);
    Emitter::Assignment bound_sum(emitter_, summed, all_there);
    AxisSet axes;
    for (const Assigned& each : deep > 1 ? summed : along) axes.add(each.axis);
    for (Coordinate at : emitter_.coordinates(axes)) {
      const auto copy = static_cast<size_t>(emitter_.copy_of(side.axes.back(), at));
      element(at, exists.empty() ? kNoValue : exists[copy]);
    }
  }

  // What is read of memory for an operand.
  static std::vector<NodeRef> loads_of(const GroupOperand& operand) {
    std::vector<NodeRef> loads;
    for (NodeRef node : topological_order({&operand.node, 1}))
      if (node->op == Op::Load) loads.push_back(node);
    return loads;
  }

  void read_block(ValueId begin, Emitter::State& values) {
    for (const GroupOperand& operand : plan_.staged) {
      const std::vector<NodeRef> loads = loads_of(operand);
      for (const Task& task : tasks_of(operand))
        copied_elements(operand, task, begin, [&](Coordinate at, ValueId) {
          for (NodeRef load : loads) values.push_back(emitter_.value(load, at));
        });
    }
  }

  // What operands are made of what was read is made only now: until then nobody waits for memory.
  // What is beyond an end is zero.
  void write_block(ValueId begin, std::span<const ValueId> values) {
    size_t next = 0;
    for (size_t i = 0; i < plan_.staged.size(); ++i) {
      const GroupOperand& operand = plan_.staged[i];
      const std::vector<NodeRef> loads = loads_of(operand);
      const int64_t step = operand.terms_at_once > 1 ? strides_[i] : 1;
      for (const Task& task : tasks_of(operand)) {
        ValueId place = code_.add(code_.mul(task.term, code_.index(strides_[i])), task.in_tile);
        int64_t copy = 0;
        copied_elements(operand, task, begin, [&](Coordinate at, ValueId exists) {
          for (NodeRef load : loads) emitter_.remember(load, at, values[next++]);
          ValueId value = emitter_.value(operand.node, at);
          ValueId zero = code_.constant(Scalar::of_int(operand.node->dtype, 0));
          // A load is zero then by itself.
          if (operand.node->op != Op::Load && exists != kNoValue)
            value = code_.compute(Op::Where, operand.node->dtype, {exists, value, zero});
          CodeBuilder::Access access;
          access.buffer = buffers_[i];
          access.lanes = threads_;
          access.place = code_.add(place, code_.index(copy++ * step));
          access.condition = task.exists;
          code_.store(access, value);
        });
      }
    }
  }

  // Terms from begin on: all of a block that was copied, or all up to an end.
  void add_terms(Emitter::State& state, const TermRange& range) {
    Side on_rows = side(plan_.rows, row_begin_, down_, rows_);
    Emitter::Assignment bound_rows(emitter_, on_rows.axes, on_rows.exists);
    Side on_columns = side(plan_.columns, column_begin_, across_, columns_);
    Emitter::Assignment bound_columns(emitter_, on_columns.axes, on_columns.exists);
    const std::vector<Emitter::Accumulator> each = accumulators();
    const bool staged = range.end == kNoValue;
    const int64_t unroll = staged ? plan_.unroll : 1;
    // A block that is unrolled as a whole takes no loop: its loads then come early, and the next
    // block's stay on their way all through it.
    const bool looped = !staged || unroll < plan_.depth;
    ValueId step = staged ? code_.index(0) : range.begin;
    Emitter::State carried;
    if (looped) {
      step = code_.open_loop(step, staged ? code_.index(plan_.depth) : range.end,
                             code_.index(unroll), !staged && may_be_empty());
      for (ValueId start : state) carried.push_back(code_.carry(start));
    } else {
      carried = state;
    }
    Emitter::State totals = carried;
    for (int64_t i = 0; i < unroll; ++i) {
      ValueId now = code_.add(step, code_.index(i));
      const Elements terms{staged ? code_.add(range.begin, now) : now, {0}};
      const std::vector<Assigned> summed = digits(plan_.summed, terms);
      std::vector<ValueId> exists;
      if (staged && !plan_.zeros_add_nothing) exists = existing(terms, terms_, plan_.depth);
      Emitter::Assignment bound_sum(emitter_, summed, exists);
      for (size_t k = 0; k < plan_.staged.size(); ++k) stage(k, now);
      for (size_t k = 0; k < each.size(); ++k)
        totals[k] = emitter_.advance(each[k], each[k].at, totals[k]);
      for (const GroupOperand& operand : plan_.staged) emitter_.unstage(operand.node);
    }
    if (!looped) {
      state = totals;
      return;
    }
    std::vector<std::pair<ValueId, ValueId>> pairs;
    for (size_t k = 0; k < state.size(); ++k) pairs.emplace_back(carried[k], totals[k]);
    code_.close_loop(pairs);
    state = carried;
  }

  void stage(size_t number, ValueId term) {
    const GroupOperand& operand = plan_.staged[number];
    const GroupSide& side = side_of(operand);
    ValueId first = first_in_tile(side, operand.of_rows ? down_ : across_);
    ValueId place = code_.add(code_.mul(term, code_.index(strides_[number])), first);
    const std::vector<int64_t> far = distances(side);
    const size_t axis = side.axes.back();
    Emitter::Layout layout;
    layout.buffer = buffers_[number];
    layout.lanes = threads_;
    layout.place = [this, place, far, axis](Coordinate at) {
      return code_.add(place, code_.index(far[static_cast<size_t>(emitter_.copy_of(axis, at))]));
    };
    emitter_.stage(operand.node, layout);
  }

  const GroupProduct& plan_;
  NodeRef rows_ = nullptr, columns_ = nullptr, terms_ = nullptr;
  ValueId row_begin_ = kNoValue, column_begin_ = kNoValue, down_ = kNoValue, across_ = kNoValue;
  std::vector<int64_t> strides_;
  std::vector<uint64_t> buffers_;
};

}  // namespace

NodeRef emit_elements(Emitter& emitter, Analysis& analysis, const GroupElements& plan) {
  return ElementsEmitter(emitter, analysis, plan).run();
}

NodeRef emit_group_product(Emitter& emitter, Analysis& analysis, const GroupProduct& plan) {
  return GroupProductEmitter(emitter, analysis, plan).run();
}

}  // namespace anneal
