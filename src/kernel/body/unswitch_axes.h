// Axes that only choose between values, as that along which tensors are stacked does. Rewrites a
// body and knows nothing of how it will run.
#pragma once

#include "body/kernel_body.h"

namespace anneal {

// A store over a short axis whose value depends on it through conditions alone becomes one store an
// element of it: no condition is left, and what several of the values need is computed once. Such
// stores write the same buffer at different places.
KernelBody unswitch_axes(const KernelBody& body);

}  // namespace anneal
