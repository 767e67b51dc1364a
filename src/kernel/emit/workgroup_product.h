// The rectangle of a product that a group of threads makes: operands are copied into fast memory
// block by block, and every thread has sums of its own in registers. What is done with a block in
// fast memory can be another's.
#pragma once

#include <functional>

#include "kernel/emit/workgroup_emitter.h"

namespace anneal {

class WorkgroupProductEmitter : protected WorkgroupEmitter {
 public:
  WorkgroupProductEmitter(Emitter& emitter, Analysis& analysis, const WorkgroupProduct& plan)
      : WorkgroupEmitter(emitter, analysis, plan.threads()), plan_(plan) {}
  virtual ~WorkgroupProductEmitter() = default;

  NodeRef run();

 protected:
  struct Side {
    std::vector<Assigned> axes;
    std::vector<ValueId> exists;
  };
  // Of the sum; whole rounds of it.
  struct TermRange {
    ValueId begin, end;  // no end: one block
    bool may_be_empty = false;
  };
  // Threads take stretches of neighbours along the side, one term of the sum each, or along the sum
  // of one element, in turns until all of the block is copied.
  struct Task {
    ValueId term, in_tile;
    ValueId exists = kNoValue;  // where some threads have none
  };
  // Where an operand lies in fast memory, and how far its elements are from each other.
  struct Placement {
    uint64_t buffer;
    int64_t first, term_stride, element_stride;
  };

  // ---- what others do in other ways

  virtual void place_threads();
  virtual void allocate_shared();
  virtual Emitter::State first_sums();
  // Terms that are added to the same sums one after the other; beyond, sums go on in stages.
  virtual int64_t longest_run() const;
  virtual int64_t terms_of_stage() const;
  // The sums of accumulators(), of so many terms at most.
  virtual Emitter::State add_some(const TermRange& range);
  // All terms of a block that was copied, which begins at a term.
  virtual void add_block(Emitter::State& sums, ValueId begin) {
    add_terms(sums, {begin, kNoValue});
  }
  // Of the task with a number, in units of what is copied at once.
  virtual Task task_of(const WorkgroupOperand& operand, ValueId number, int64_t deep,
                       int64_t stretches);

  // ---- for all of them

  const WorkgroupSide& side_of(const WorkgroupOperand& operand) const {
    return operand.of_rows ? plan_.rows : plan_.columns;
  }
  Side bound_rows() { return side(plan_.rows, row_begin_, down_, rows_); }
  Side bound_columns() { return side(plan_.columns, column_begin_, across_, columns_); }
  // With rows and columns bound.
  std::vector<Emitter::Accumulator> accumulators();

  const WorkgroupProduct& plan_;
  ValueId down_ = kNoValue, across_ = kNoValue;  // of the thread
  std::vector<Placement> placements_;            // of staged operands

 private:
  TermRange terms_that_count();
  Emitter::State add_all(const TermRange& range);
  Emitter::State add_in_stages(const TermRange& range, int64_t stage);
  bool may_be_empty() const;
  Side side(const WorkgroupSide& side, ValueId begin, ValueId thread, NodeRef count);
  std::vector<Task> tasks_of(const WorkgroupOperand& operand);
  bool only_whole_blocks() const;
  // One that a thread copies, so far from the first of its task in fast memory.
  struct Element {
    Coordinate at;
    ValueId exists;  // none: it does
    int64_t distance;
  };
  void copied_elements(
      size_t number, const Task& task, ValueId begin,
      const std::function<void(const std::vector<Element>& elements)>& elements_of);
  std::vector<std::vector<size_t>> copied_together() const;
  std::vector<NodeRef> nodes_of(std::span<const size_t> operands) const;
  std::vector<NodeRef> loads_of(std::span<const size_t> operands) const;
  void read_block(ValueId begin, Emitter::State& values);
  void write_block(ValueId begin, std::span<const ValueId> values);
  void make_together(std::span<const size_t> operands, std::span<const Element> elements);
  void write(size_t number, const Task& task, std::span<const Element> elements);
  void add_terms(Emitter::State& state, const TermRange& range);
  void stage(size_t number, ValueId term);

  NodeRef rows_ = nullptr, columns_ = nullptr, terms_ = nullptr;
  ValueId row_begin_ = kNoValue, column_begin_ = kNoValue;
};

}  // namespace anneal
