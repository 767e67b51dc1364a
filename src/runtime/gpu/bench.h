// Kernels by themselves on any GPU, by its clock where it has one.
#pragma once

#include "runtime/device/kernel_bench.h"
#include "runtime/gpu/executable.h"

namespace anneal::gpu {

std::unique_ptr<KernelBench> make_bench(CurrentBackend current, Device& device);

}  // namespace anneal::gpu
