// Finds a small program that fails as a given one does: fewer roots, nodes replaced by their
// sources or by buffers, smaller sizes, plainer dtypes.
// Must not know what failing means.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace anneal {

// What is wrong with a program; empty when nothing is.
using GraphFailure = std::function<std::string(std::span<const NodeRef> roots)>;

struct ShrunkGraph {
  std::vector<NodeRef> roots;
  std::string failure;
  int tries = 0;  // how often `failure` was asked
};

// `roots` must fail. Programs it tries are tame (value_info.h) where the given one is. In the
// current graph; gives up improving after `seconds`.
ShrunkGraph shrink_graph(std::span<const NodeRef> roots, const GraphFailure& failure,
                         double seconds = 20);

}  // namespace anneal
