// What a product is, for graphs and for bodies: a sum of terms that are made of parts which change
// along the rows of the result and parts which change along its columns, so that each is used again
// for all of the other side. Matmuls, convolutions and outer products are. Whether it pays to treat
// one as such is for others.
#pragma once

#include <span>
#include <vector>

#include "body/axis_set.h"
#include "body/free_axes.h"
#include "ir/node.h"

namespace anneal {

// Along which of two axes a value changes.
enum class Side : uint8_t { Neither, Rows, Columns, Both };
inline Side side_of(const AxisSet& changes, size_t rows, size_t columns) {
  if (changes.contains(rows)) return changes.contains(columns) ? Side::Both : Side::Rows;
  return changes.contains(columns) ? Side::Columns : Side::Neither;
}

// The axes of two factors: those along which one alone changes are its side.
struct FactorAxes {
  AxisSet rows, columns;  // of the first one alone, of the second one alone
  AxisSet shared;         // what is summed, and batches
  bool is_product() const { return !rows.empty() && !columns.empty(); }
};
inline FactorAxes factor_axes(const AxisSet& first, const AxisSet& second) {
  return {first.without(second), second.without(first), first & second};
}

// Terms of sums over `summed` as the sides make them: the largest parts that change along what is
// summed, and not along both of rows and columns. Any function may join them, as distances between
// points do, so that it is a wider question than whether two factors are a product; of a term that
// is two factors the answers are the same, for every axis of the one side and of the other.
struct ProductOperands {
  std::vector<NodeRef> of_rows, of_columns;
  std::vector<NodeRef> others;  // change along neither
  bool mixed = false;           // something that is no function of parts changes along both
  bool is_product() const { return !mixed && !of_rows.empty() && !of_columns.empty(); }
};
ProductOperands product_operands(std::span<const NodeRef> terms, const AxisSet& summed, size_t rows,
                                 size_t columns, FreeAxes& free);

}  // namespace anneal
