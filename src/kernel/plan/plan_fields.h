// The fields of every part of a plan, once: what writes plans and what reads them walk the same
// list. `visit(name, field)` gets each.
#pragma once

#include "kernel/plan/kernel_plan.h"

namespace anneal {

template <typename Visit>
void visit_fields(AxisLoop& part, Visit& visit) {
  visit("axis", part.axis);
  visit("tile", part.tile);
}

template <typename Visit>
void visit_fields(GridAxis& part, Visit& visit) {
  visit("axis", part.axis);
  visit("block", part.block);
  visit("tile", part.tile);
}

template <typename Visit>
void visit_fields(StorePlan& part, Visit& visit) {
  visit("stores", part.stores);
  visit("loops", part.loops);
  visit("block-axis", part.block_axis);
}

template <typename Visit>
void visit_fields(CellPlan& part, Visit& visit) {
  visit("grid", part.grid);
  visit("stores", part.stores);
}

template <typename Visit>
void visit_fields(StagedOperand& part, Visit& visit) {
  visit("node", part.node);
  visit("of-rows", part.of_rows);
  visit("inner", part.inner);
  visit("transposed", part.turned);
  visit("flat", part.flat);
  visit("together", part.together);
}

template <typename Visit>
void visit_fields(ProductSide& part, Visit& visit) {
  visit("axes", part.axes);
  visit("tile", part.tile);
}

template <typename Visit>
void visit_fields(ProductPlan& part, Visit& visit) {
  visit("sums", part.sums);
  visit("stores", part.stores);
  visit("grid", part.grid);
  visit("rows", part.rows);
  visit("columns", part.columns);
  visit("k", part.summed);
  visit("k-tile", part.depth);
  visit("step", part.step);
  visit("staged", part.staged);
  visit("sums-in-memory", part.through_memory);
  visit("flat-sums", part.flat_sums);
  visit("flat-stores", part.flat_stores);
}

template <typename Visit>
void visit_fields(WorkgroupElements& part, Visit& visit) {
  visit("stores", part.stores);
  visit("axes", part.axes);
  visit("threads", part.threads);
  visit("neighbours", part.neighbours);
  visit("copies", part.copies);
}

template <typename Visit>
void visit_fields(TransposeTile& part, Visit& visit) {
  visit("stores", part.stores);
  visit("outer", part.others);
  visit("along", part.along);
  visit("across", part.across);
  visit("transposed", part.turned);
}

template <typename Visit>
void visit_fields(WorkgroupSide& part, Visit& visit) {
  visit("axes", part.axes);
  visit("threads", part.threads);
  visit("copies", part.copies);
  visit("neighbours", part.neighbours);
}

template <typename Visit>
void visit_fields(WorkgroupOperand& part, Visit& visit) {
  visit("node", part.node);
  visit("of-rows", part.of_rows);
  visit("along-k", part.along_sum);
  visit("terms", part.terms_at_once);
  visit("elements", part.elements_at_once);
}

template <typename Visit>
void visit_fields(MatrixFactors& part, Visit& visit) {
  visit("of-rows", part.of_rows);
  visit("of-columns", part.of_columns);
}

template <typename Visit>
void visit_fields(MaskBound& part, Visit& visit) {
  visit("low", part.low);
  visit("high", part.high);
  visit("by", part.by);
}

template <typename Visit>
void visit_fields(WorkgroupProduct& part, Visit& visit) {
  visit("sums", part.sums);
  visit("stores", part.stores);
  visit("outer", part.others);
  visit("rows", part.rows);
  visit("columns", part.columns);
  visit("k", part.summed);
  visit("k-tile", part.depth);
  visit("k-tiles", part.blocks);
  visit("unroll", part.unroll);
  visit("staged", part.staged);
  visit("zero-padded", part.zeros_add_nothing);
  visit("bounds", part.bounds);
  visit("matrices", part.matrices);
  visit("matrix-terms", part.terms_of_matrices);
  visit("matrices-at-once", part.matrices_at_once);
}

template <typename Visit>
void visit_fields(ReductionPlan& part, Visit& visit) {
  visit("reductions", part.reductions);
  visit("alone", part.alone);
  visit("within-lanes", part.within_lanes);
  visit("most-copies-alone", part.most_copies_alone);
  visit("most-copies-within", part.most_copies_within);
}

// Of all plans, whatever their kind.
template <typename Visit>
void visit_fields(KernelPlan& part, Visit& visit) {
  visit("reductions", part.reductions);
  visit("simd", part.simd);
  visit("row-lanes", part.row_lanes);
  visit("far-bytes", part.far_bytes);
  visit("stream-bytes", part.stream_bytes);
}

}  // namespace anneal
