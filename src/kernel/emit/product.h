// Emits a product: packs operands into memory of the cell, sums tiles in registers, applies what
// follows. Chooses nothing: see plan/cpu/plan_product.cc.
#pragma once

#include "kernel/emit/emit.h"

namespace anneal {

// `ranges` are the cell's blocks of plan.grid.
void emit_product(Emitter& emitter, Analysis& analysis, const ProductPlan& plan,
                  std::span<const Emitter::Range> ranges);

}  // namespace anneal
