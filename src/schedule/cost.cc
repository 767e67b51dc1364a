#include "schedule/cost.h"

#include <algorithm>

#include "ir/dtype.h"
#include "symbolic/bounds.h"

namespace anneal {

double size_estimate(NodeRef size) {
  const Interval range = bounds(size);
  constexpr int64_t kLargest = int64_t{1} << 40;
  return static_cast<double>(std::clamp<int64_t>(range.max, 0, kLargest));
}

double element_estimate(const Shape& shape) {
  double elements = 1;
  for (NodeRef dim : shape.dims()) elements *= size_estimate(dim);
  return elements;
}

double compute_cost(NodeRef node) { return info(node->op).cost; }

double memory_cost(DType dtype) { return kMovedByte * static_cast<double>(byte_size(dtype)); }

}  // namespace anneal
