// How fast a GPU is, measured now: what kernels on it are measured by.
#pragma once

#include "runtime/webgpu/gpu.h"

namespace anneal::cli {

struct GpuSpeed {
  double copy = 0;                  // GB/s, bytes read and bytes written
  double arithmetic = 0;            // GFLOP/s of f32 multiply-adds in registers
  double upload = 0, download = 0;  // GB/s between the host and the GPU
};

GpuSpeed gpu_speed(webgpu::Gpu& gpu);

}  // namespace anneal::cli
