// Which axis of a consumer is which axis of a producer: a load reads what a store wrote.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "body/kernel_body.h"

namespace anneal {

// Axes, and what to call them instead.
using Renaming = std::vector<std::pair<NodeRef, NodeRef>>;

inline std::span<const NodeRef> store_axes(NodeRef store) { return store->sources().subspan(4); }

// A condition that is the constant true; one that is false is a constant, too.
inline bool is_always(NodeRef condition) {
  return condition->is_const() && condition->arg.bits == 1;
}

NodeRef renamed(NodeRef root, const Renaming& renaming);

// For each axis of the store an axis of the consumer with the same size, such that the load's
// position is the store's; nothing if there is no such renaming.
std::optional<Renaming> match_axes(std::span<const Axis> producer, NodeRef store,
                                   std::span<const Axis> consumer, NodeRef position);

}  // namespace anneal
