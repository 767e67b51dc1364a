// The CPU as a device: kernel bodies are lowered, compiled by LLVM and run on the thread pool. Its
// memory is the host's.
#pragma once

#include <memory>

#include "codegen/backends.h"
#include "runtime/device/device.h"

namespace anneal {

std::unique_ptr<Device> make_cpu_device();

// With LLVM's texts, and the threads of all such devices.
extern const Backend kCpuBackend;

// The CPU that this runs on.
Target host_cpu_target();

}  // namespace anneal
