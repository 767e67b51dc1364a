// GPUs through WebGPU, as a device of the runtime.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/device.h"
#include "runtime/webgpu/gpu.h"
#include "target/target.h"

namespace anneal {

struct WebGpuOptions {
  std::string adapter;     // see webgpu::choose_adapter()
  webgpu::GpuOptions gpu;  // but `matrices`: the device sets it by what is below
  MatmulPrecision precision = MatmulPrecision::Full;
  // Kernels as for a GPU, or for a CPU that pretends to be one; by default as the adapter is.
  enum class Tiles : uint8_t { ByAdapter, Gpu, Cpu } tiles = Tiles::ByAdapter;
  // The adapter's units for matrices where `precision` allows them, or kernels as if there were
  // some and always, with what these do spelled out.
  enum class Matrices : uint8_t { ByAdapter, Spelled } matrices = Matrices::ByAdapter;

  // ANNEAL_ADAPTER and ANNEAL_MATMUL_PRECISION=full or high; for tests also
  // ANNEAL_WEBGPU_LIMITS=minimum, ANNEAL_WEBGPU_TILES=gpu or cpu, ANNEAL_WEBGPU_MATRICES=spelled.
  static WebGpuOptions from_environment();
};

// Of options that are taken from the environment later, whatever ANNEAL_ADAPTER and
// ANNEAL_MATMUL_PRECISION say.
void set_webgpu_adapter(std::string selector);
void set_matmul_precision(MatmulPrecision precision);

// A UserError where there is no such GPU.
std::unique_ptr<Device> make_webgpu_device(
    const WebGpuOptions& options = WebGpuOptions::from_environment());

// What such a device computes on now.
std::shared_ptr<webgpu::Gpu> gpu_of(const Device& device);

// The WGSL that such a device runs a part of a kernel as. In the current graph, which must be the
// schedule's own.
std::string shader_text(const Device& device, const Schedule& schedule, const KernelPart& part);

// What kernels may use of a GPU that was opened with such options.
Capabilities webgpu_capabilities(const webgpu::Gpu& gpu, const WebGpuOptions& options);

}  // namespace anneal
