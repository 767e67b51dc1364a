// From what a kernel computes (KernelBody) to how: axes get roles, tiles, vectors and fast memory,
// and become a Program.
#pragma once

#include "kernel/program.h"
#include "schedule/capabilities.h"
#include "schedule/kernel_body.h"

namespace anneal {

struct LoweredBody {
  Program program;
  NodeRef cells = nullptr;  // how many cells the grid has: an index expression
};

// Transformations to leave out, by name, for tests: "split-axes", "merge-axes", "vectorise",
// "unroll", "tile", "stage", "reach", "one-pass", "reciprocals", "choices".
struct LowerOptions {
  Capabilities capabilities;
  std::vector<std::string> disabled;
};

// In the current graph, which must be the body's own.
LoweredBody lower(const KernelBody& body, const LowerOptions& options = {});

}  // namespace anneal
