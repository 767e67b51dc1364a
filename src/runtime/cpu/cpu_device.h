// The CPU as a device: kernel bodies are lowered, compiled by LLVM and run on the thread pool. Its
// memory is the host's.
#pragma once

#include <memory>

#include "base/machine.h"
#include "runtime/device.h"

namespace anneal {

std::unique_ptr<Device> make_cpu_device();

// What lowering and scheduling may count on: here, or on any machine.
Capabilities cpu_capabilities();
Capabilities cpu_capabilities(int vector_bytes, const Machine& machine);

}  // namespace anneal
