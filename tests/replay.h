// Kernel replay: what programs become on every named target, as text that is compared from commit
// to commit. One that only moves or renames code changes none of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/node.h"
#include "target/target.h"

namespace anneal {

struct ReplayProgram {
  std::string_view name;
  std::vector<NodeRef> (*build)();  // what it computes, in the current graph
};
const std::vector<ReplayProgram>& replay_programs();

struct ReplayTarget {
  std::string name;
  Capabilities capabilities;
  Language language;
};
std::vector<ReplayTarget> replay_targets();

// A section: a line about the schedule, then one a kernel with its plan, a hash of its program and
// one of its WGSL where the target has that; kernels that are alike are counted. The same in every
// process.
std::string replay(const ReplayProgram& program, const ReplayTarget& target);

// Lines that one text has and the other has not, each section under its first line: "- was",
// "+ is". Empty where they are the same.
std::string replay_difference(std::string_view was, std::string_view is);

}  // namespace anneal
