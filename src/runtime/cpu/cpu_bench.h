// Kernels by themselves on the thread pool.
#pragma once

#include <memory>

#include "runtime/device/kernel_bench.h"

namespace anneal {

std::unique_ptr<KernelBench> make_cpu_bench();

}  // namespace anneal
