// How much work kernels are: arithmetic and memory traffic, counted from their bodies. Estimates
// for people and rooflines; sizes that are symbolic count at their largest. Decides nothing.
#pragma once

#include "schedule/schedule.h"

namespace anneal {

struct WorkCount {
  int64_t operations = 0;    // distinct, of those that compute values
  double flops = 0;          // float arithmetic; a transcendental function counts as one
  double bytes_read = 0;     // each element once, as if caches held everything
  double bytes_written = 0;  // also once; what is added to counts as read too

  WorkCount& operator+=(const WorkCount& other);
};

WorkCount count_work(const KernelBody& body);
WorkCount count_work(const Kernel& kernel);  // of all its parts

// Bytes that a run needs, known before it.
struct MemoryCount {
  int64_t inputs = 0;       // the program's own: parameters, data, optimizer state
  int64_t outputs = 0;      // results that are not assigned to those
  int64_t temporaries = 0;  // meanwhile, if each had a place of its own
  int64_t arena = 0;        // what they take as planned

  int64_t peak() const { return inputs + outputs + arena; }
};

MemoryCount count_memory(const Schedule& schedule);

}  // namespace anneal
