// How much code a kernel in the making is, estimated before it is lowered. Code generators take
// more than linear time for long kernels, so that it bounds what is fused.
#pragma once

#include "schedule/fuse/rangeify.h"
#include "target/capabilities.h"

namespace anneal {

// Instructions of one node, of a program or of a kernel.
double code_size(NodeRef node);

// How much of the fragment one kernel should hold at most; 1 or more: all of it.
double share_of_kernel(const Fragment& fragment, const Capabilities& capabilities);

}  // namespace anneal
