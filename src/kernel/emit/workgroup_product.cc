#include "kernel/emit/workgroup_product.h"

#include <algorithm>
#include <tuple>

#include "ir/node_map.h"
#include "kernel/emit/emit_workgroup.h"
#include "kernel/plan/cost.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr int64_t kLongestRunOfThread = 8192, kTermsOfStage = 1024;  // for accuracy

// How far copies are from a thread's first element.
std::vector<int64_t> distances(const WorkgroupSide& side) {
  std::vector<int64_t> result;
  for (int copy = 0; copy < side.copies; ++copy)
    result.push_back(int64_t{copy / side.neighbours} * side.threads * side.neighbours +
                     copy % side.neighbours);
  return result;
}

std::vector<int64_t> count_to(int64_t end) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < end; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

NodeRef WorkgroupProductEmitter::run() {
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
  allocate_shared();
  // Sums go through the whole product before anything is stored. Rows and columns are bound
  // while terms are added and at the end, and to other elements while operands are copied.
  const Emitter::State state = add_all(terms_that_count());
  const Side rows = bound_rows(), columns = bound_columns();
  Emitter::Assignment assigned_rows(emitter_, rows.axes, rows.exists);
  Emitter::Assignment assigned_columns(emitter_, columns.axes, columns.exists);
  const std::vector<Emitter::Accumulator> each = accumulators();
  for (size_t i = 0; i < each.size(); ++i)
    emitter_.remember(each[i].reduction, each[i].at,
                      emitter_.or_empty(each[i].reduction, state[i]));
  emitter_.stores_with_prefetched_operands(plan_.stores, kLoadsAhead);

  NodeRef cells = index_mul(index_mul(count_of(analysis_, plan_.others), down), across);
  return simplify(cells);
}

// Sums of a stage cost as many registers as those that are added to: only long ones are worth it.
int64_t WorkgroupProductEmitter::longest_run() const { return kLongestRunOfThread; }
int64_t WorkgroupProductEmitter::terms_of_stage() const {
  return (kTermsOfStage - 1) / plan_.terms_of_round() * plan_.terms_of_round() +
         plan_.terms_of_round();
}

Emitter::State WorkgroupProductEmitter::add_all(const TermRange& range) {
  const int64_t most = bounds(terms_).max;
  if (most <= longest_run()) return add_some(range);
  int64_t stage = terms_of_stage();
  while (most / kLongestRun > stage) stage *= kLongestRun;
  return add_in_stages(range, stage);
}

Emitter::State WorkgroupProductEmitter::add_in_stages(const TermRange& range, int64_t stage) {
  if (stage < terms_of_stage()) return add_some(range);
  ValueId terms = code_.index(stage);
  ValueId begin = code_.open_loop(range.begin, range.end, terms, range.may_be_empty);
  const auto copies =
      static_cast<size_t>(plan_.rows.copies) * static_cast<size_t>(plan_.columns.copies);
  Emitter::State totals;
  for (NodeRef sum : plan_.sums)
    for (size_t i = 0; i < copies; ++i)
      totals.push_back(code_.carry(emitter_.start_value(sum, threads_)));
  const TermRange some{begin, code_.min(code_.add(begin, terms), range.end)};
  const Emitter::State more = add_in_stages(some, stage / kLongestRun);
  std::vector<std::pair<ValueId, ValueId>> next;
  for (size_t i = 0; i < totals.size(); ++i)
    next.emplace_back(totals[i], emitter_.step(plan_.sums[i / copies], totals[i], more[i]));
  code_.close_loop(next);
  return totals;
}

Emitter::State WorkgroupProductEmitter::add_some(const TermRange& range) {
  Emitter::State state = first_sums();
  if (plan_.staged.empty()) {
    add_terms(state, range);
  } else {
    // What the next block needs is on its way while this one is added up.
    const auto sums = static_cast<std::ptrdiff_t>(state.size());
    read_block(range.begin, state);
    ValueId begin = code_.open_loop(range.begin, range.end, code_.index(plan_.terms_of_round()),
                                    range.may_be_empty);
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
      add_block(totals, here);
      next = std::move(totals);
      next.insert(next.end(), ahead.begin(), ahead.end());
    }
    std::vector<std::pair<ValueId, ValueId>> pairs;
    for (size_t i = 0; i < state.size(); ++i) pairs.emplace_back(carried[i], next[i]);
    code_.close_loop(pairs);
    state.assign(carried.begin(), carried.begin() + sums);
  }
  return state;
}

void WorkgroupProductEmitter::allocate_shared() {
  for (const WorkgroupOperand& operand : plan_.staged) {
    const int64_t stride = plan_.staged_stride(operand.of_rows);
    placements_.push_back(
        {code_.add_local(operand.node->dtype, stride * plan_.depth), 0, stride, 1});
  }
}

Emitter::State WorkgroupProductEmitter::first_sums() {
  Emitter::State sums;
  const int64_t copies = int64_t{plan_.rows.copies} * plan_.columns.copies;
  for (NodeRef sum : plan_.sums)
    sums.insert(sums.end(), static_cast<size_t>(copies), emitter_.start_value(sum, threads_));
  return sums;
}

// Threads that read fast memory together, kThreadsAtOnce of them, are a rectangle, too, which
// takes less of both sides than a row does. Drivers gain by it with short blocks only.
void WorkgroupProductEmitter::place_threads() {
  const int across = plan_.columns.threads, tall = kThreadsAtOnce / kThreadsAcross;
  if (plan_.blocks == 1 || across % kThreadsAcross != 0 || plan_.rows.threads % tall != 0) {
    across_ = mod(lane_, code_.index(across));
    down_ = div(lane_, code_.index(across));
    return;
  }
  ValueId rectangle = div(lane_, code_.index(kThreadsAtOnce)),
          inside = mod(lane_, code_.index(kThreadsAtOnce));
  ValueId beside = code_.index(across / kThreadsAcross), wide = code_.index(kThreadsAcross);
  const ValueId across_inside = mod(inside, wide);
  across_ = code_.add(code_.mul(mod(rectangle, beside), wide), across_inside);
  const ValueId down_inside = div(inside, wide), rows = code_.index(tall);
  down_ = code_.add(code_.mul(div(rectangle, beside), rows), down_inside);
}

WorkgroupProductEmitter::TermRange WorkgroupProductEmitter::terms_that_count() {
  TermRange range{code_.index(0), scalar(terms_), may_be_empty()};
  const int64_t round = plan_.terms_of_round();
  const ValueId last_round = code_.index(only_whole_blocks() ? static_value(terms_) - round : 0);
  auto larger = [&](ValueId a, ValueId b) { return code_.compute(Op::Max, DType::Index, {a, b}); };
  auto round_of = [&](ValueId term) {
    const ValueId terms = code_.index(round);
    return code_.mul(div(term, terms), terms);
  };
  auto first = [&](MaskBound::Axis axis) {
    return axis == MaskBound::Axis::Row ? row_begin_ : column_begin_;
  };
  auto last = [&](MaskBound::Axis axis) {
    const bool row = axis == MaskBound::Axis::Row;
    return code_.add(first(axis), code_.index((row ? plan_.rows : plan_.columns).elements() - 1));
  };
  for (const MaskBound& bound : plan_.bounds) {
    if (bound.low == MaskBound::Axis::Term) {
      const ValueId zero = code_.index(0), by = code_.index(bound.by);
      ValueId most = larger(code_.add(last(bound.high), by), zero);
      const ValueId terms = code_.index(round);
      range.end = code_.min(range.end, code_.add(round_of(most), terms));
    } else if (bound.high == MaskBound::Axis::Term) {
      ValueId least = code_.add(first(bound.low), code_.index(-bound.by));
      ValueId begin = round_of(larger(least, code_.index(0)));
      range.begin = larger(range.begin, only_whole_blocks() ? code_.min(begin, last_round) : begin);
    } else {
      const ValueId by = code_.index(bound.by), high = code_.add(last(bound.high), by);
      ValueId any = code_.compute(Op::Le, DType::Bool, {first(bound.low), high});
      range.end = code_.compute(Op::Where, DType::Index, {any, range.end, code_.index(0)});
    }
  }
  return range;
}

bool WorkgroupProductEmitter::may_be_empty() const {
  if (!plan_.bounds.empty()) return true;
  for (size_t axis : plan_.summed)
    if (analysis_.may_be_empty(axis)) return true;
  return false;
}

WorkgroupProductEmitter::Side WorkgroupProductEmitter::side(const WorkgroupSide& side,
                                                            ValueId begin, ValueId thread,
                                                            NodeRef count) {
  ValueId first = code_.add(begin, code_.mul(thread, code_.index(side.neighbours)));
  const Elements elements{first, distances(side), side.neighbours};
  return {digits(side.axes, elements), existing(elements, count, side.elements())};
}

std::vector<Emitter::Accumulator> WorkgroupProductEmitter::accumulators() {
  AxisSet sides;
  for (const WorkgroupSide* side : {&plan_.rows, &plan_.columns})
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

std::vector<WorkgroupProductEmitter::Task> WorkgroupProductEmitter::tasks_of(
    const WorkgroupOperand& operand) {
  const int64_t stretches = side_of(operand).elements() / operand.elements_at_once,
                deep = plan_.depth / operand.terms_at_once, all = stretches * deep;
  std::vector<Task> tasks;
  for (int64_t done = 0; done < all; done += threads_) {
    ValueId number = code_.add(lane_, code_.index(done));
    Task task = task_of(operand, number, deep, stretches);
    task.term = code_.mul(task.term, code_.index(operand.terms_at_once));
    task.in_tile = code_.mul(task.in_tile, code_.index(operand.elements_at_once));
    if (done + threads_ > all)
      task.exists = code_.compute(Op::Lt, DType::Bool, {number, code_.index(all)});
    tasks.push_back(task);
  }
  return tasks;
}

WorkgroupProductEmitter::Task WorkgroupProductEmitter::task_of(const WorkgroupOperand& operand,
                                                               ValueId number, int64_t deep,
                                                               int64_t stretches) {
  ValueId inner = code_.index(operand.along_sum ? deep : stretches);
  ValueId low = mod(number, inner), high = div(number, inner);
  return operand.along_sum ? Task{low, high} : Task{high, low};
}

bool WorkgroupProductEmitter::only_whole_blocks() const {
  return is_static(terms_) && static_value(terms_) > 0 && static_value(terms_) % plan_.depth == 0;
}

// Elements of an operand that a thread copies of the block that begins at a term: with their axes
// bound, and whether they exist.
void WorkgroupProductEmitter::copied_elements(
    size_t number, const Task& task, ValueId begin,
    const std::function<void(const std::vector<Element>& elements)>& elements_of) {
  const WorkgroupOperand& operand = plan_.staged[number];
  const WorkgroupSide& side = side_of(operand);
  const Placement& placement = placements_[number];
  const int wide = operand.elements_at_once, deep = operand.terms_at_once;
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
  if (wide > 1)
    for (const Assigned& each : along) axes.add(each.axis);
  if (deep > 1)
    for (const Assigned& each : summed) axes.add(each.axis);
  std::vector<Element> all;
  for (Coordinate at : emitter_.coordinates(axes)) {
    const int copy = emitter_.copy_of(side.axes.back(), at),
              term = emitter_.copy_of(plan_.summed.back(), at);
    all.push_back({at, exists.empty() ? kNoValue : exists[static_cast<size_t>(copy)],
                   copy * placement.element_stride + term * placement.term_stride});
  }
  std::ranges::stable_sort(all, {}, &Element::distance);
  elements_of(all);
}

// Operands of the same elements: what they are made of is read once.
std::vector<std::vector<size_t>> WorkgroupProductEmitter::copied_together() const {
  std::vector<std::vector<size_t>> together;
  auto kind = [&](size_t i) {
    const WorkgroupOperand& operand = plan_.staged[i];
    return std::tuple(operand.of_rows, operand.along_sum, operand.terms_at_once);
  };
  for (size_t i = 0; i < plan_.staged.size(); ++i) {
    auto known = std::ranges::find_if(
        together, [&](const std::vector<size_t>& others) { return kind(others[0]) == kind(i); });
    if (known == together.end()) known = together.emplace(together.end());
    known->push_back(i);
  }
  return together;
}

// What operands are made of, sources first, and differs between their elements. Sums have axes of
// their own, and are made when they are needed.
std::vector<NodeRef> WorkgroupProductEmitter::nodes_of(std::span<const size_t> operands) const {
  std::vector<NodeRef> nodes;
  NodeMap<char> seen;
  std::function<void(NodeRef)> visit = [&](NodeRef node) {
    if (node->dtype == DType::Index || analysis_.free(node).empty()) return;
    if (!seen.insert(node, 1).second || is_reduce_over(node->op)) return;
    if (node->op != Op::Load)
      for (NodeRef source : node->sources()) visit(source);
    nodes.push_back(node);
  };
  for (size_t i : operands) visit(plan_.staged[i].node);
  return nodes;
}

// What is read of memory for operands.
std::vector<NodeRef> WorkgroupProductEmitter::loads_of(std::span<const size_t> operands) const {
  std::vector<NodeRef> loads = nodes_of(operands);
  std::erase_if(loads, [](NodeRef node) { return node->op != Op::Load; });
  return loads;
}

void WorkgroupProductEmitter::read_block(ValueId begin, Emitter::State& values) {
  for (const std::vector<size_t>& operands : copied_together()) {
    const std::vector<NodeRef> loads = loads_of(operands);
    for (const Task& task : tasks_of(plan_.staged[operands[0]]))
      copied_elements(operands[0], task, begin, [&](const std::vector<Element>& elements) {
        for (const Element& element : elements)
          for (NodeRef load : loads) values.push_back(emitter_.value(load, element.at));
      });
  }
}

// What operands are made of what was read is made only now: until then nobody waits for memory.
void WorkgroupProductEmitter::write_block(ValueId begin, std::span<const ValueId> values) {
  size_t next = 0;
  for (const std::vector<size_t>& operands : copied_together()) {
    const std::vector<NodeRef> loads = loads_of(operands);
    for (const Task& task : tasks_of(plan_.staged[operands[0]]))
      copied_elements(operands[0], task, begin, [&](const std::vector<Element>& elements) {
        for (const Element& element : elements)
          for (NodeRef load : loads) emitter_.remember(load, element.at, values[next++]);
        for (std::span<const Element> rest = elements; !rest.empty();) {
          const std::span<const Element> some = rest.first(std::min(kStoredAtOnce, rest.size()));
          make_together(operands, some);
          for (size_t i : operands) write(i, task, some);
          rest = rest.subspan(some.size());
        }
      });
  }
}

// The same of all elements one after the other, so that who writes the code finds pairs.
void WorkgroupProductEmitter::make_together(std::span<const size_t> operands,
                                            std::span<const Element> elements) {
  for (NodeRef node : nodes_of(operands))
    for (const Element& element : elements) emitter_.value(node, element.at);
}

// Neighbours in fast memory one after the other, which compilers store at once. What is beyond an
// end is zero.
void WorkgroupProductEmitter::write(size_t number, const Task& task,
                                    std::span<const Element> elements) {
  NodeRef node = plan_.staged[number].node;
  const Placement& placement = placements_[number];
  const ValueId in_tile = code_.mul(task.in_tile, code_.index(placement.element_stride));
  ValueId first = code_.add(code_.mul(task.term, code_.index(placement.term_stride)), in_tile);
  for (const auto& [at, exists, distance] : elements) {
    ValueId value = emitter_.value(node, at);
    // A load is zero then by itself.
    if (node->op != Op::Load && exists != kNoValue)
      value = code_.compute(Op::Where, node->dtype,
                            {exists, value, code_.constant(Scalar::of_int(node->dtype, 0))});
    CodeBuilder::Access access;
    access.buffer = placement.buffer;
    access.lanes = threads_;
    access.place = code_.add(first, code_.index(placement.first + distance));
    access.condition = task.exists;
    code_.store(access, value);
  }
}

// Terms from begin on: all of a block that was copied, or all up to an end.
void WorkgroupProductEmitter::add_terms(Emitter::State& state, const TermRange& range) {
  const Side rows = bound_rows(), columns = bound_columns();
  Emitter::Assignment assigned_rows(emitter_, rows.axes, rows.exists);
  Emitter::Assignment assigned_columns(emitter_, columns.axes, columns.exists);
  const std::vector<Emitter::Accumulator> each = accumulators();
  const bool staged = range.end == kNoValue;
  const int64_t unroll = staged ? plan_.unroll : 1;
  // A block that is unrolled as a whole takes no loop: its loads then come early, and the next
  // block's stay on their way all through it.
  const bool looped = !staged || unroll < plan_.depth;
  ValueId step = staged ? code_.index(0) : range.begin;
  Emitter::State carried;
  if (looped) {
    const ValueId by = code_.index(unroll);
    const ValueId end = staged ? code_.index(plan_.depth) : range.end;
    step = code_.open_loop(step, end, by, !staged && may_be_empty());
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
    for (const WorkgroupOperand& operand : plan_.staged) emitter_.unstage(operand.node);
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

void WorkgroupProductEmitter::stage(size_t number, ValueId term) {
  const WorkgroupOperand& operand = plan_.staged[number];
  const WorkgroupSide& side = side_of(operand);
  ValueId first = code_.mul(operand.of_rows ? down_ : across_, code_.index(side.neighbours));
  ValueId place = code_.add(code_.mul(term, code_.index(placements_[number].term_stride)), first);
  const std::vector<int64_t> far = distances(side);
  const size_t axis = side.axes.back();
  Emitter::Layout layout;
  layout.buffer = placements_[number].buffer;
  layout.lanes = threads_;
  layout.place = [this, place, far, axis](Coordinate at) {
    return code_.add(place, code_.index(far[static_cast<size_t>(emitter_.copy_of(axis, at))]));
  };
  emitter_.stage(operand.node, layout);
}

}  // namespace anneal
