// How long each kernel of a schedule takes on a device, measured now. What it computes on is made
// up: the built-in programs are structure without memory.
#pragma once

#include <vector>

#include "runtime/device/device.h"

namespace anneal::cli {

struct KernelTimes {
  int runs = 0;
  std::vector<double> seconds;  // by kernel, the least of all runs
};

// A UserError for a device that does not tell. Sizes that are symbolic are at their largest.
KernelTimes time_kernels(const Schedule& schedule, Device& device);

}  // namespace anneal::cli
