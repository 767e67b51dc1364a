// Which parts of a schedule do the same, so that each is compiled once.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace anneal {

struct DistinctBodies {
  std::vector<const KernelBody*> bodies;  // in the order in which they are first met
  std::vector<int> of_part;               // by part, over all kernels and phases
};

DistinctBodies distinct_bodies(const Schedule& schedule);

}  // namespace anneal
