// The loops of plans for groups of threads.
#pragma once

#include "kernel/emit/emit.h"

namespace anneal {

// All answer how many cells there are.
NodeRef emit_elements(Emitter& emitter, Analysis& analysis, const WorkgroupElements& plan);
NodeRef emit_squares(Emitter& emitter, Analysis& analysis, const TransposeTile& plan);
NodeRef emit_group_product(Emitter& emitter, Analysis& analysis, const WorkgroupProduct& plan);
// Of one that has matrices.
NodeRef emit_matrix_product(Emitter& emitter, Analysis& analysis, const WorkgroupProduct& plan);

}  // namespace anneal
