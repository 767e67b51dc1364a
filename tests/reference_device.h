// A device that runs kernel bodies one scalar at a time, with memory of its own: schedules, memory
// plans and the runtime are tested with it whatever the state of lowering and code generation.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace anneal {

struct ReferenceOptions {
  Capabilities capabilities = {};
  bool shares_host_memory = true;
  int64_t available_bytes = int64_t{1} << 33;
};

// What it has done, for tests to look at.
struct ReferenceLog {
  int64_t allocated_bytes = 0, most_allocated_bytes = 0;  // at one time
  const void* newest_memory = nullptr;
  int phases = 0, compiled = 0;
};

std::unique_ptr<Device> make_reference_device(const ReferenceOptions& options = {},
                                              std::shared_ptr<ReferenceLog> log = nullptr);

// A device whose every phase is run by another one and by the reference as well: the first value
// that differs by more than rounding is an InternalError that shows the kernel. The other device
// works in memory of the host.
std::unique_ptr<Device> make_checked_device(std::unique_ptr<Device> device);

}  // namespace anneal
