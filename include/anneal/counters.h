// What was done so far, in numbers that only grow: the difference over a step shows that it builds,
// compiles and allocates nothing.
#pragma once

#include <cstdint>

namespace anneal {

struct Counters {
  int64_t nodes_built = 0;        // in this thread's graph
  int64_t kernels_scheduled = 0;  // on the current device
  int64_t kernels_compiled = 0;   // distinct ones
  int64_t launches = 0;           // phases of kernels that were run
  int64_t bytes_allocated = 0;    // for tensors, temporaries and kernels
  int64_t host_to_device_bytes = 0, device_to_host_bytes = 0;

  friend Counters operator-(const Counters& a, const Counters& b) {
    return {a.nodes_built - b.nodes_built,
            a.kernels_scheduled - b.kernels_scheduled,
            a.kernels_compiled - b.kernels_compiled,
            a.launches - b.launches,
            a.bytes_allocated - b.bytes_allocated,
            a.host_to_device_bytes - b.host_to_device_bytes,
            a.device_to_host_bytes - b.device_to_host_bytes};
  }
};

Counters counters();

}  // namespace anneal
