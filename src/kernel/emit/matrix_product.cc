// Products whose blocks in fast memory are multiplied by units for matrices. Each matrix of sums
// belongs to some threads together until all terms are added; then it goes through fast memory to
// the threads that store its elements.
#include "kernel/emit/emit_workgroup.h"
#include "kernel/emit/workgroup_product.h"

namespace anneal {
namespace {

constexpr int64_t kSumStride = WorkgroupProduct::kSumStride,
                  kSumElements = WorkgroupProduct::kSumElements;
constexpr int kRowsOfThread = WorkgroupProduct::kRowsOfThread,
              kColumnsOfThread = WorkgroupProduct::kColumnsOfThread;
constexpr int kThreadsOfRow = kMatrixUnit.columns / kColumnsOfThread;

class MatrixProductEmitter : public WorkgroupProductEmitter {
 public:
  using WorkgroupProductEmitter::WorkgroupProductEmitter;

 private:
  int down() const { return plan_.rows.threads * kRowsOfThread / kMatrixUnit.rows; }
  int across() const { return plan_.columns.threads * kColumnsOfThread / kMatrixUnit.columns; }
  // Matrices of the same threads.
  int matrix_rows() const { return plan_.rows.copies / kRowsOfThread; }
  int matrix_columns() const { return plan_.columns.copies / kColumnsOfThread; }

  // Matrices of the same threads are as far apart as all threads have rows, or columns; so threads
  // have elements in the order of any product.
  void place_threads() override {
    ValueId inside = mod(lane_, code_.index(kMatrixUnit.lanes));
    unit_ = div(lane_, code_.index(kMatrixUnit.lanes));
    unit_row_ = div(unit_, code_.index(across()));
    unit_column_ = mod(unit_, code_.index(across()));
    const ValueId row_inside = div(inside, code_.index(kThreadsOfRow));
    down_ =
        code_.add(code_.mul(unit_row_, code_.index(kMatrixUnit.rows / kRowsOfThread)), row_inside);
    const ValueId column_inside = mod(inside, code_.index(kThreadsOfRow));
    across_ = code_.add(code_.mul(unit_column_, code_.index(kThreadsOfRow)), column_inside);
  }

  void allocate_shared() override {
    placements_.resize(plan_.staged.size());
    for (const bool of_rows : {true, false}) {
      const WorkgroupProduct::MatrixBlock block = plan_.matrix_block(of_rows);
      const uint64_t buffer = code_.add_local(kMatrixUnit.operands, block.stride * block.rows);
      int64_t first = 0;
      for (size_t i = 0; i < plan_.staged.size(); ++i) {
        if (plan_.staged[i].of_rows != of_rows) continue;
        placements_[i] = block.rows_are_elements ? Placement{buffer, first, 1, block.stride}
                                                 : Placement{buffer, first, block.stride, 1};
        first += block.row_length;
      }
    }
    const int64_t units = plan_.threads() / kMatrixUnit.lanes;
    sums_ = code_.add_local(kMatrixUnit.sums, units * plan_.matrices_at_once * kSumElements);
  }

  // Neighbours store along the sum: that is how rows lie in fast memory.
  Task task_of(const WorkgroupOperand& operand, ValueId number, int64_t deep,
               int64_t stretches) override {
    if (operand.of_rows) return {mod(number, code_.index(deep)), div(number, code_.index(deep))};
    return WorkgroupProductEmitter::task_of(operand, number, deep, stretches);
  }

  Emitter::State first_sums() override {
    return Emitter::State(
        static_cast<size_t>(matrix_rows()) * static_cast<size_t>(matrix_columns()),
        code_.matrix_zero(threads_));
  }

  // The matrix of an operand that holds terms from one on, of matrix number `number` of this side.
  ValueId load(size_t operand, int number, int64_t term) {
    const bool left = plan_.staged[operand].of_rows;
    const Placement& placement = placements_[operand];
    const int side = left ? kMatrixUnit.rows : kMatrixUnit.columns;
    ValueId first =
        code_.mul(left ? unit_row_ : unit_column_, code_.index(side * placement.element_stride));
    const int64_t further =
        placement.first +
        int64_t{number} * (left ? down() : across()) * side * placement.element_stride +
        term * placement.term_stride;
    CodeBuilder::MatrixPlace place{placement.buffer, code_.add(first, code_.index(further)),
                                   placement.element_stride, placement.term_stride, threads_};
    if (!left) std::swap(place.row_stride, place.column_stride);
    return code_.matrix_load(place, left);
  }

  void add_block(Emitter::State& sums, ValueId) override {
    for (int64_t term = 0; term < plan_.depth; term += kMatrixUnit.depth) {
      std::vector<std::vector<ValueId>> operands(plan_.staged.size());
      auto loaded = [&](size_t operand) -> const std::vector<ValueId>& {
        const int count = plan_.staged[operand].of_rows ? matrix_rows() : matrix_columns();
        if (operands[operand].empty())
          for (int i = 0; i < count; ++i) operands[operand].push_back(load(operand, i, term));
        return operands[operand];
      };
      for (const MatrixFactors& factors : plan_.matrices) {
        const std::vector<ValueId>& rows = loaded(factors.of_rows);
        const std::vector<ValueId>& columns = loaded(factors.of_columns);
        size_t next = 0;
        for (ValueId row : rows)
          for (ValueId column : columns) {
            sums[next] = code_.matrix_multiply_add(row, column, sums[next]);
            ++next;
          }
      }
    }
  }

  // Units do not round what they add but cut it off: the more they add up, the less it is worth.
  int64_t longest_run() const override { return plan_.terms_of_matrices; }
  int64_t terms_of_stage() const override { return plan_.terms_of_matrices; }

  Emitter::State add_some(const TermRange& range) override {
    return elements_of(WorkgroupProductEmitter::add_some(range));
  }

  // What this thread stores of matrices of sums, in the order of accumulators.
  Emitter::State elements_of(const Emitter::State& sums) {
    const Side on_rows = bound_rows(), on_columns = bound_columns();
    Emitter::Assignment assigned_rows(emitter_, on_rows.axes, on_rows.exists);
    Emitter::Assignment assigned_columns(emitter_, on_columns.axes, on_columns.exists);
    const auto rows = static_cast<size_t>(plan_.rows.copies),
               columns = static_cast<size_t>(plan_.columns.copies);
    Emitter::State elements(rows * columns);
    const auto at_once = static_cast<size_t>(plan_.matrices_at_once);
    for (size_t first = 0; first < sums.size(); first += at_once) {
      const size_t end = std::min(first + at_once, sums.size());
      for (size_t i = first; i < end; ++i)
        code_.matrix_store({sums_, place_of_sum(i - first), kSumStride, 1, threads_}, sums[i]);
      for (size_t i = first; i < end; ++i)
        for (int row = 0; row < kRowsOfThread; ++row)
          for (int column = 0; column < kColumnsOfThread; ++column) {
            const size_t row_copy = i / static_cast<size_t>(matrix_columns()) * kRowsOfThread +
                                    static_cast<size_t>(row);
            const size_t column_copy =
                i % static_cast<size_t>(matrix_columns()) * kColumnsOfThread +
                static_cast<size_t>(column);
            elements[row_copy * columns + column_copy] = element(i - first, row, column);
          }
    }
    Emitter::State ordered;
    for (const Emitter::Accumulator& each : accumulators())
      ordered.push_back(
          elements[copy_of(plan_.rows, each.at) * columns + copy_of(plan_.columns, each.at)]);
    return ordered;
  }

  size_t copy_of(const WorkgroupSide& side, Coordinate at) const {
    return static_cast<size_t>(emitter_.copy_of(side.axes.back(), at));
  }

  ValueId place_of_sum(size_t number) {
    ValueId mine = code_.mul(unit_, code_.index(plan_.matrices_at_once * kSumElements));
    return code_.add(mine, code_.index(static_cast<int64_t>(number) * kSumElements));
  }

  // One that this thread stores.
  ValueId element(size_t number, int row, int column) {
    ValueId inside = mod(lane_, code_.index(kMatrixUnit.lanes));
    const ValueId row_stride = code_.index(kRowsOfThread * kSumStride);
    ValueId first_row = code_.mul(div(inside, code_.index(kThreadsOfRow)), row_stride);
    const ValueId columns = code_.index(kColumnsOfThread);
    ValueId first_column = code_.mul(mod(inside, code_.index(kThreadsOfRow)), columns);
    ValueId first = code_.add(code_.add(place_of_sum(number), first_row), first_column);
    CodeBuilder::Access access;
    access.buffer = sums_;
    access.place = code_.add(first, code_.index(row * kSumStride + column));
    access.lanes = threads_;
    return code_.load(access, false);
  }

  uint64_t sums_ = 0;                                                       // a local buffer
  ValueId unit_ = kNoValue, unit_row_ = kNoValue, unit_column_ = kNoValue;  // of the thread
};

}  // namespace

NodeRef emit_matrix_product(Emitter& emitter, Analysis& analysis, const WorkgroupProduct& plan) {
  return MatrixProductEmitter(emitter, analysis, plan).run();
}

}  // namespace anneal
