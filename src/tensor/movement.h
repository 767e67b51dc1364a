// What the files of movement share: sizes that are checked, least and greatest of two of them, and
// pieces of tensors cut out and joined. Not for other folders.
#pragma once

#include <span>
#include <vector>

#include "tensor/lift.h"

namespace anneal {

// Beyond every size, and far enough from the ends of int64 to be added to sizes.
inline constexpr int64_t kFar = int64_t{1} << 61;

inline bool is_number(NodeRef size, int64_t value) {
  return is_static(size) && static_value(size) == value;
}

inline std::vector<NodeRef> dims_of(NodeRef node) {
  return {node->shape->dims().begin(), node->shape->dims().end()};
}

// The smaller and the larger of two sizes, also where that depends on the variables.
NodeRef least(NodeRef a, NodeRef b);
NodeRef greatest(NodeRef a, NodeRef b);

// Coordinates along an axis; in 32 bits where those are enough.
NodeRef positions(std::span<const NodeRef> dims, size_t axis);
// An index expression as a tensor of that dtype and shape.
NodeRef spread(NodeRef index, DType dtype, std::span<const NodeRef> dims);

// The `count` elements from `begin` of an axis.
NodeRef cut(NodeRef node, size_t axis, NodeRef begin, NodeRef count);
// Zeros, or another value of the dtype, before and after each axis.
NodeRef pad_constant(NodeRef x, std::span<const Padding> padding, const Scalar& value);
// One after another, of pieces that have one dtype and agree on every axis but this one.
NodeRef join(std::vector<NodeRef> pieces, size_t axis);

}  // namespace anneal
