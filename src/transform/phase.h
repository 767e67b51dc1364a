// Which part of a training step a node belongs to. Nothing is recorded while building: the phase
// follows from what reaches what.
#pragma once

#include <span>
#include <string_view>

#include "ir/node_map.h"

namespace anneal {

enum class Phase : uint8_t { Forward, Backward, Update };
std::string_view name(Phase phase);

// Forward is what the loss needs; backward what the gradients need beyond that; update the rest.
NodeMap<Phase> phases(std::span<const NodeRef> forward, std::span<const NodeRef> backward,
                      std::span<const NodeRef> update);

}  // namespace anneal
