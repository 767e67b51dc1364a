// How a chain of movement ops reads its source. Reshape, permute, expand, pad, shrink and flip move
// no data: they only change which element of the source an element of the result is. An IndexMap
// says so as arithmetic, simplified, so that ops that undo each other leave nothing behind.
#pragma once

#include <span>
#include <vector>

#include "ir/node.h"

namespace anneal {

struct IndexMap {
  std::vector<NodeRef> coordinates;  // index expressions, one an axis
  NodeRef valid;                     // a condition; where it fails the element is a pad's zero
};

// From coordinates of the result of one movement op to coordinates of its source. The coordinates
// given lie within the result's shape wherever `output.valid` holds; those answered lie within the
// source's shape, and mean something, wherever the answered `valid` holds.
IndexMap through(NodeRef movement, const IndexMap& output);

// The same from `last` down to the first node that is no movement op: the source. `valid` is the
// constant true when no pad can be read. The output coordinates are assumed to lie within last's
// shape; for symbolic sizes hold the same limits (limits.h) to simplify the answer further.
struct ChainMap {
  NodeRef source;
  IndexMap map;
};
ChainMap through_chain(NodeRef last, std::span<const NodeRef> output_coordinates);

// The position in row-major order, and the coordinates of a position.
NodeRef flatten_index(std::span<const NodeRef> coordinates, std::span<const NodeRef> dims);
std::vector<NodeRef> unflatten_index(NodeRef position, std::span<const NodeRef> dims);

}  // namespace anneal
