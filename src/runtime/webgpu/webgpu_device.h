// GPUs through WebGPU, as a device of the runtime.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "codegen/backends.h"
#include "runtime/device/device.h"
#include "runtime/webgpu/gpu.h"

namespace anneal {

struct WebGpuOptions {
  std::string adapter;     // see webgpu::choose_adapter()
  webgpu::GpuOptions gpu;  // but `matrices`: the device sets it by what is below
  Wishes wishes;
  // Kernels as for a GPU, or for a CPU that pretends to be one; by default as the adapter is.
  enum class Tiles : uint8_t { ByAdapter, Gpu, Cpu } tiles = Tiles::ByAdapter;
  // The adapter's units for matrices where the wished precision allows them, or kernels as if there
  // were some and always, which programs emulate.
  enum class Matrices : uint8_t { ByAdapter, Emulated } matrices = Matrices::ByAdapter;

  // ANNEAL_ADAPTER, ANNEAL_MATMUL_PRECISION=full or high, ANNEAL_MEMORY_BUDGET; for tests also
  // ANNEAL_WEBGPU_LIMITS=minimum, ANNEAL_WEBGPU_TILES=gpu or cpu, ANNEAL_WEBGPU_MATRICES=emulated.
  static WebGpuOptions from_environment();
};

// Of options that are taken from the environment later, whatever that says.
void set_webgpu_adapter(std::string selector);
void set_matmul_precision(MatmulPrecision precision);
void set_memory_budget(int64_t bytes);

extern const Backend kWebGpuBackend;

// A UserError where there is no such GPU.
std::unique_ptr<Device> make_webgpu_device(
    const WebGpuOptions& options = WebGpuOptions::from_environment());

// What such a device computes on now.
std::shared_ptr<webgpu::Gpu> gpu_of(const Device& device);

// As data: an adapter that was opened, with the limits and features that it was opened with.
Target target_of(const webgpu::AdapterInfo& adapter, const WebGpuOptions& options);

}  // namespace anneal
