// GPUs through WebGPU, as a device of the runtime.
#pragma once

#include <memory>
#include <string>

#include "runtime/device.h"
#include "runtime/webgpu/gpu.h"

namespace anneal {

struct WebGpuOptions {
  std::string adapter;  // see webgpu::choose_adapter()
  webgpu::GpuOptions gpu;
  // Kernels as for a GPU, or for a CPU that pretends to be one; by default as the adapter is.
  enum class Tiles : uint8_t { ByAdapter, Gpu, Cpu } tiles = Tiles::ByAdapter;

  // ANNEAL_ADAPTER; for tests also ANNEAL_WEBGPU_LIMITS=minimum and ANNEAL_WEBGPU_TILES=gpu or cpu.
  static WebGpuOptions from_environment();
};

// The adapter of options that are taken from the environment later, whatever ANNEAL_ADAPTER says.
void set_webgpu_adapter(std::string selector);

// A UserError where there is no such GPU.
std::unique_ptr<Device> make_webgpu_device(
    const WebGpuOptions& options = WebGpuOptions::from_environment());

// What such a device computes on now.
std::shared_ptr<webgpu::Gpu> gpu_of(const Device& device);

// The WGSL that such a device runs a part of a kernel as. In the current graph, which must be the
// schedule's own.
std::string shader_text(const Device& device, const Schedule& schedule, const KernelPart& part);

// What kernels may use of it.
Capabilities webgpu_capabilities(const webgpu::Gpu& gpu, WebGpuOptions::Tiles tiles);

}  // namespace anneal
