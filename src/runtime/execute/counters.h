// What the runtime has done so far, in numbers: for tests, benchmarks and reports.
#pragma once

#include <atomic>
#include <cstdint>

namespace anneal {

// What a device has done, where it has memory of its own.
struct DeviceCounters {
  int64_t submits = 0;  // lists of kernels handed over
  int64_t allocations = 0;
  int64_t bytes_in = 0, bytes_out = 0;  // copied to it, and from it
};

struct RuntimeCounters {
  int64_t runs = 0;               // of programs
  int64_t hits = 0, misses = 0;   // of the cache of compiled programs
  int64_t evicted = 0;            // programs that it has forgotten
  int64_t kernels_compiled = 0;   // of schedules, equal ones counted again
  int64_t bodies_compiled = 0;    // of their parts, equal ones of a schedule once
  int64_t launches = 0;           // phases that were run
  int64_t plans = 0;              // memory plans made
  int64_t arena_allocations = 0;  // how often memory for temporaries was asked for
  int64_t arena_bytes = 0;        // allocated for temporaries, now
  int64_t result_bytes = 0;       // allocated for results, all together
  int64_t copied_bytes = 0;       // moved to, from or within memory besides what kernels do
  DeviceCounters device;
};

}  // namespace anneal
