// What conditions say of axes: k <= i + 3, as causal masks and windows do.
#pragma once

#include <vector>

#include "ir/node.h"

namespace anneal {

// low <= high + by, of two axes.
struct AxisBound {
  NodeRef low, high;
  int64_t by;
  bool operator==(const AxisBound&) const = default;
};

// That hold wherever the condition does; there may be more to it.
std::vector<AxisBound> bounds_in(NodeRef condition);

}  // namespace anneal
