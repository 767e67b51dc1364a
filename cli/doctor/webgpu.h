// The part of anneal doctor that looks for GPUs: each link of the chain from library to driver, so
// that the one that is missing is named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/gpu_speed.h"
#include "cli/json.h"
#include "runtime/webgpu/adapter.h"

namespace anneal::cli {

// A file that tells Vulkan of a driver.
struct DriverManifest {
  std::string path, library;
  std::string problem;  // empty: its library can be loaded
};

struct GpuDiagnosis {
  std::string library, interface;  // empty: there is none
  std::vector<webgpu::TriedLibrary> tried;
  bool loader = false;  // Vulkan's; elsewhere than on Linux it is not needed
  std::vector<DriverManifest> manifests;
  struct Gpu {
    size_t number;  // that --adapter takes
    webgpu::AdapterInfo info;
    std::optional<GpuSpeed> speed;
    std::string problem;  // why there is none
  };
  std::vector<Gpu> gpus;
  std::string missing, fix;  // what keeps GPUs from working; empty: nothing
};

// `adapter`: see webgpu::choose_among(); empty: all GPUs.
GpuDiagnosis diagnose_gpus(const std::string& adapter);

std::vector<std::string> lines_of(const GpuDiagnosis& diagnosis);
Json to_json(const GpuDiagnosis& diagnosis);

}  // namespace anneal::cli
