// GPUs through WebGPU, as a device of the runtime.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/device.h"
#include "runtime/webgpu/gpu.h"

namespace anneal {

// `adapter`: see webgpu::choose_adapter(). A UserError where there is none.
std::unique_ptr<Device> make_webgpu_device(std::string_view adapter = "",
                                           const webgpu::GpuOptions& options = {});

// What kernels may use of a GPU.
Capabilities webgpu_capabilities(const webgpu::Gpu& gpu);

}  // namespace anneal
