// The CPU as a device: kernel bodies are lowered, compiled by LLVM and run on the thread pool. Its
// memory is the host's.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace anneal {

std::unique_ptr<Device> make_cpu_device();

// The CPU that this runs on.
Target host_cpu_target();

}  // namespace anneal
