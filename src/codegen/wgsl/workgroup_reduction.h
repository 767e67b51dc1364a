// Functions that combine what all threads of a group have: sums, maxima. They wait for each other
// in them.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "codegen/wgsl/arithmetic.h"

namespace anneal::wgsl {

class WorkgroupReductions {
 public:
  static constexpr std::string_view kPrefix = "combine_";

  // `subgroup`: how many threads exchange values without memory; 1: none do.
  WorkgroupReductions(Arithmetic& arithmetic, int threads, int subgroup)
      : arithmetic_(arithmetic), threads_(threads), subgroup_(subgroup) {}

  // The name of the one for an op.
  std::string function(Op op, DType dtype);
  bool use_subgroups() const;
  // All that were asked for, and the memory they need.
  std::string text();

 private:
  Arithmetic& arithmetic_;
  int threads_, subgroup_;
  std::map<std::string, std::pair<Op, DType>> used_;
};

}  // namespace anneal::wgsl
