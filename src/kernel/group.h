// The loops of plans for groups of threads.
#pragma once

#include "kernel/emit.h"

namespace anneal {

// Both answer how many cells there are.
NodeRef emit_elements(Emitter& emitter, Analysis& analysis, const GroupElements& plan);
NodeRef emit_group_product(Emitter& emitter, Analysis& analysis, const GroupProduct& plan);

}  // namespace anneal
