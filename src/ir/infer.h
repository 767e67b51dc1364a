// Says what a node's dtype and shape are, or why it cannot be. The one place that knows which nodes
// are well formed.
#pragma once

#include <span>
#include <string>

#include "ir/graph.h"

namespace anneal {

struct Limits {
  static constexpr size_t kRank = 32;
  static constexpr size_t kSources = 4096;
};

// Whether the tensor sources of an op may have this dtype. The selector of a where and the places
// of an indexed access have rules of their own.
bool accepts(const OpInfo& row, DType dtype);

// `given` when there are too few sources to tell.
DType infer_dtype(Op op, DType given, std::span<const NodeRef> sources);

// The shape of a plain elementwise node, by a few comparisons; null when it takes more to tell.
const Shape* infer_plain_elementwise(Op op, std::span<const NodeRef> sources);

// Empty text when the node is well formed, and then `shape` is its shape.
std::string infer_shape(Graph& graph, Op op, DType dtype, std::span<const NodeRef> sources, Arg arg,
                        const Shape** shape);

}  // namespace anneal
