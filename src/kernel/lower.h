// From what a kernel computes (KernelBody) to how: axes get roles, tiles, vectors and fast memory,
// and become a Program.
#pragma once

#include "kernel/program.h"
#include "schedule/kernel_body.h"
#include "target/capabilities.h"

namespace anneal {

struct LoweredBody {
  Program program;
  NodeRef cells = nullptr;  // how many cells the grid has: an index expression
  std::string plan = {};    // how it was planned, as a line of text, where it was asked for
};

// Transformations to leave out, by name, for tests: "split-axes", "merge-axes", "vectorise",
// "unroll", "tile", "stage", "reach", "one-pass", "reciprocals", "choices".
struct LowerOptions {
  Capabilities capabilities;
  std::vector<std::string> disabled = {};
  bool describe = false;  // its plan as text, too
};

// In the current graph, which must be the body's own.
LoweredBody lower(const KernelBody& body, const LowerOptions& options = {});

}  // namespace anneal
