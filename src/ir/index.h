// Integer expressions over Variables: sizes, strides, positions. They are ordinary nodes of dtype
// index, kept in linear normal form (a sum of terms times constants) from the moment they are
// built, so that equal sums are the same node. Division, bounds and proofs are src/symbolic's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace anneal {

NodeRef index_const(int64_t value);
NodeRef index_add(NodeRef a, NodeRef b);
NodeRef index_sub(NodeRef a, NodeRef b);
NodeRef index_mul(NodeRef a, NodeRef b);
// Constants are folded, division by one disappears; anything deeper needs symbolic::simplify.
NodeRef index_floor_div(NodeRef a, NodeRef b);
NodeRef index_mod(NodeRef a, NodeRef b);

// The product of the sizes. Throws InternalError only for a static shape too large to count, which
// no Shape of a node is.
NodeRef element_count_expr(std::span<const NodeRef> dims);
int64_t element_count(const Shape& shape);  // of a static shape

// constant + sum of factor * term. Terms are neither constants nor sums, appear once, and are
// ordered by key.
struct LinearForm {
  struct Term {
    NodeRef base;
    int64_t factor;
  };
  std::vector<Term> terms;
  int64_t constant = 0;
  bool overflow = false;  // some coefficient does not fit; the form then means nothing

  void add(const LinearForm& other, int64_t times);
};

LinearForm linear_form(NodeRef expression);
// The canonical node of a form: terms that share a factor are grouped, (a + b) * 3 + c + 5, which
// is never longer than the sum it came from.
NodeRef from_linear_form(const LinearForm& form);

}  // namespace anneal
