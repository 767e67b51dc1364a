// Which parts of a schedule do the same, so that each is compiled once.
#pragma once

#include <deque>
#include <vector>

#include "schedule/schedule.h"

namespace anneal {

struct DistinctBodies {
  std::vector<const KernelBody*> bodies;  // in the order in which they are first met
  std::vector<int> of_part;               // by part, over all kernels and phases
};

DistinctBodies distinct_bodies(const Schedule& schedule);

// The same for devices whose buffers may begin at any element: one body stands for many that differ
// only in where they read from, as the steps of a loop over slices do. In the schedule's graph.
struct ShiftedBodies {
  std::vector<const KernelBody*> bodies;
  std::vector<int> of_part;
  // By part: how many elements further each of its buffers begins for the body; none: nowhere.
  std::vector<std::vector<int64_t>> offsets;
  std::deque<KernelBody> made;  // those that are not the schedule's own
};

ShiftedBodies shifted_bodies(const Schedule& schedule);

}  // namespace anneal
