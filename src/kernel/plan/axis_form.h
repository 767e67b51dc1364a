// Index expressions as sums over axes: slope * axis + ... + rest. What memory access looks like
// along each axis. Rewrites nothing.
#pragma once

#include <vector>

#include "body/axis_set.h"
#include "body/free_axes.h"
#include "symbolic/polynomial.h"

namespace anneal {

// expression == sum of slope * axis + rest, where no slope holds an axis; axes that appear in any
// other way are in the rest.
struct AxisForm {
  struct Term {
    size_t axis;
    LinearForm slope;
  };
  std::vector<Term> terms;  // ordered by axis
  LinearForm rest;
  AxisSet in_rest;
  bool overflow = false;  // then it says nothing

  // Of an axis that is not in the rest; zero where it does not appear.
  LinearForm slope(size_t axis) const;
};
AxisForm axis_form(NodeRef expression, FreeAxes& free);

}  // namespace anneal
