// From what a kernel computes (KernelBody) to how: axes get roles, tiles, vectors and fast memory,
// and become a Program.
#pragma once

#include <string>
#include <vector>

#include "body/kernel_body.h"
#include "kernel/program/program.h"
#include "rewrite/passes.h"
#include "target/capabilities.h"

namespace anneal {

struct LoweredBody {
  Program program;
  NodeRef cells = nullptr;  // how many cells the grid has: an index expression
  std::string plan = {};    // how it was planned, as a line of text, where it was asked for
  // Why the plan that was given is not used, but the planner's own; empty: it is, or none was.
  std::string refused = {};
};

// `disabled`: passes of body_passes() to leave out, by name or family; and choices of plans:
// "vectorise", "unroll", "tile", "stage".
struct LowerOptions {
  Capabilities capabilities;
  std::vector<std::string> disabled = {};
  bool describe = false;  // its plan as text, too
  std::string plan = {};  // in full, as text, instead of the planner's; empty: the planner's
};

// What is done to a body before it is planned.
struct PreparedBody {
  KernelBody body;
  // Lanes are the rows of values that were too large to be stored; else they run along rows. Known
  // before rows are staged or kept.
  bool row_lanes = false;
};
const PassTable<PreparedBody, LowerOptions>& body_passes();

PreparedBody prepare(const KernelBody& body, const LowerOptions& options);

// A way to run a body: as a text that LowerOptions takes, and for people.
struct PlanChoice {
  std::string plan, summary;
  double nanoseconds = 0;    // that it is expected to take on all cores; 0: it is not known
  int registers = 0;         // that its innermost loop fills
  int64_t memory_bytes = 0;  // of a cell's fast memory
};
// The planner's own first, then others, the most promising first. In the current graph, which must
// be the body's own.
std::vector<PlanChoice> plan_choices(const KernelBody& body, const LowerOptions& options);

// In the current graph, which must be the body's own.
LoweredBody lower(const KernelBody& body, const LowerOptions& options = {});

}  // namespace anneal
