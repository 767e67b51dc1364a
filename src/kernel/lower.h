// From what a kernel computes (KernelBody) to how: axes get roles, tiles, vectors and fast memory,
// and become a Program.
#pragma once

#include "body/kernel_body.h"
#include "kernel/program/program.h"
#include "rewrite/passes.h"
#include "target/capabilities.h"

namespace anneal {

struct LoweredBody {
  Program program;
  NodeRef cells = nullptr;  // how many cells the grid has: an index expression
  std::string plan = {};    // how it was planned, as a line of text, where it was asked for
};

// `disabled`: passes of body_passes() to leave out, by name or family; and choices of plans:
// "vectorise", "unroll", "tile", "stage".
struct LowerOptions {
  Capabilities capabilities;
  std::vector<std::string> disabled = {};
  bool describe = false;  // its plan as text, too
};

// What is done to a body before it is planned.
struct PreparedBody {
  KernelBody body;
  // Lanes are the rows of values that were too large to be stored; else they run along rows. Known
  // before rows are staged or kept.
  bool row_lanes = false;
};
const PassTable<PreparedBody, LowerOptions>& body_passes();

// In the current graph, which must be the body's own.
LoweredBody lower(const KernelBody& body, const LowerOptions& options = {});

}  // namespace anneal
