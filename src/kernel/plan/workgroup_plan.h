// Plans for devices whose lanes are the threads of a group: every thread has elements of its own,
// and groups share what products read.
#pragma once

#include <vector>

#include "ir/node.h"
#include "target/matrix_unit.h"

namespace anneal {

// Threads take the elements of the axes that all stores have, counted through as one.
struct WorkgroupElements {
  std::vector<NodeRef> stores;
  std::vector<size_t> axes;  // the outermost first
  int threads = 1;
  int neighbours = 1;  // elements of a thread that follow each other
  int copies = 1;      // such stretches
};

// Squares of elements, of which some lie along another axis than results do: those are read as they
// lie, and turned in the memory of the group.
struct TransposeTile {
  static constexpr int kSide = 32, kThreads = 256;
  static constexpr int kStride = kSide + 1;  // so that columns lie in different banks
  std::vector<NodeRef> stores;
  std::vector<size_t> others;  // axes, the outermost first
  size_t along, across;        // axes: results lie along the first, what is turned along the second
  std::vector<NodeRef> turned;  // loads
};

// Threads are a rectangle, and each has a rectangle of the product in its registers.
struct WorkgroupSide {
  std::vector<size_t> axes;  // the outermost first; counted through as one
  int threads = 1, copies = 1;
  int neighbours = 1;  // so many copies are next to each other
  int64_t elements() const { return int64_t{threads} * copies; }
};
struct WorkgroupOperand {
  NodeRef node;
  bool of_rows;
  bool along_sum;            // threads that are neighbours read along the sum
  int terms_at_once = 1;     // neighbours in the sum that a thread reads, then
  int elements_at_once = 1;  // or neighbours along the side
};
// Two staged operands that are multiplied.
struct MatrixFactors {
  size_t of_rows, of_columns;
};
// Of two axes, low <= high + by: terms of a sum that are 0 elsewhere, or results that no sum is
// needed for.
struct MaskBound {
  enum class Axis : uint8_t { Row, Column, Term };
  Axis low, high;
  int64_t by;
};
struct WorkgroupProduct {
  std::vector<NodeRef> sums, stores;
  std::vector<size_t> others;  // axes outside of the product
  WorkgroupSide rows, columns;
  std::vector<size_t> summed;
  int64_t depth = 16;  // terms that are copied at once
  int64_t blocks = 1;  // of so many, which a round of the loop over them takes one after the other
  int64_t unroll = 4;  // terms that are added one after the other
  std::vector<WorkgroupOperand> staged;
  bool zeros_add_nothing = false;  // terms beyond the end, copied as zeros
  std::vector<MaskBound> bounds;
  // Where units multiply matrices: the factors whose products make a term, staged as f16.
  std::vector<MatrixFactors> matrices;
  int64_t terms_of_matrices = 0;  // that units add up before sums go on in f32
  int matrices_at_once = 1;       // of sums of the same threads that fast memory has room for
  // Blocks of operands of one side, in fast memory for matrices: one behind the other in rows that
  // are elements, with their terms, or terms. Padding makes rows begin in other banks.
  struct MatrixBlock {
    bool rows_are_elements;
    int64_t row_length, stride, rows;  // the length of one operand's row
  };
  MatrixBlock matrix_block(bool of_rows) const;
  // Of a matrix of sums: how it lies in fast memory, and what one of its threads stores.
  static constexpr int64_t kSumStride = 20, kSumElements = kMatrixUnit.rows * kSumStride;
  static constexpr int kRowsOfThread = 2, kColumnsOfThread = 4;
  int threads() const { return rows.threads * columns.threads; }
  // Without matrix units: from one term of a staged operand to the next, so that rows begin in
  // other banks.
  int64_t staged_stride(bool of_rows) const {
    const WorkgroupSide& side = of_rows ? rows : columns;
    return side.elements() + side.neighbours;
  }
  int64_t terms_of_round() const { return depth * blocks; }
};

}  // namespace anneal
