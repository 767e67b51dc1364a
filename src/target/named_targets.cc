// The targets that come with the program: rows of facts. What no machine of ours confirmed says so
// in its description.
#include "target/target.h"

namespace anneal {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

struct CpuRow {
  std::string_view name, description, triple, cpu;
  int vector_bytes, registers, cores;
  int64_t l1, l2, l3;
  double gb_per_second, gflop_per_second;
};

// Kernels are tuned on the processor of cpu-avx512. Plans for NEON fill 16 of its registers, as
// those of other narrow vectors: nobody has measured more.
constexpr CpuRow kCpus[] = {
    {"cpu-avx2", "8 cores of an AMD EPYC 7002 (Zen 2), by its data sheet",
     "x86_64-unknown-linux-gnu", "znver2", 32, 16, 8, 32 * kKiB, 512 * kKiB, 16 * kMiB, 100, 800},
    {"cpu-avx512", "8 cores of an AMD EPYC 9004 (Zen 4), which kernels are tuned on",
     "x86_64-unknown-linux-gnu", "znver4", 64, 32, 8, 32 * kKiB, kMiB, 32 * kMiB, 200, 950},
    {"cpu-neon", "8 cores of an Arm Neoverse N1, by its data sheet", "aarch64-unknown-linux-gnu",
     "neoverse-n1", 16, 32, 8, 64 * kKiB, kMiB, 32 * kMiB, 100, 320},
};

Target target_of(const CpuRow& row) {
  Machine machine;
  machine.cpu = row.description;
  machine.cores = row.cores;
  machine.caches = {{1, "data", row.l1, 1}, {2, "unified", row.l2, 1}, {3, "unified", row.l3, 8}};
  Target target = cpu_target(row.vector_bytes, machine);
  target.name = row.name;
  target.triple = row.triple;
  target.cpu = row.cpu;
  target.tuning.most_registers = target.hardware.vector_registers;
  target.hardware.vector_registers = row.registers;
  target.hardware.memory_gb_per_second = row.gb_per_second;
  target.hardware.f32_gflop_per_second = row.gflop_per_second;
  return target;
}

struct GpuRow {
  std::string_view name, description;
  GpuKind kind;
  Hardware hardware;
};

// Kernels for GPUs are tuned on the H200 alone, with the limits that Dawn gives it under Vulkan;
// its speeds are those that PyTorch reaches there.
std::vector<GpuRow> gpu_rows() {
  return {
      {"webgpu-minimum",
       "the least that every WebGPU offers",
       GpuKind::Hardware,
       {.workgroup_bytes = 16 * kKiB,
        .max_workgroup_threads = 256,
        .max_buffers = 8,
        .max_binding_bytes = 128 * kMiB,
        .max_buffer_bytes = 256 * kMiB}},
      {"webgpu-h200",
       "an NVIDIA H200 with Dawn under Vulkan, which kernels are tuned on",
       GpuKind::Hardware,
       {.f16 = true,
        .matrix_units = {{16, 16, 16, DType::F16, DType::F32, 32}},
        .workgroup_bytes = 48 * kKiB,
        .memory_bytes = 139 * kGiB,
        .max_workgroup_threads = 1024,
        .subgroup_min = 32,
        .subgroup_max = 32,
        .subgroup_operations = true,
        .max_buffers = 10,
        .max_binding_bytes = 4 * kGiB - 1,
        .max_buffer_bytes = 1024 * kGiB,
        .memory_gb_per_second = 4180,
        .f32_gflop_per_second = 50000}},
      {"webgpu-apple-m",
       "an Apple M1 under Metal, by its data sheet",
       GpuKind::Hardware,
       {.f16 = true,
        .matrix_units = {{8, 8, 8, DType::F16, DType::F16, 32},
                         {8, 8, 8, DType::F32, DType::F32, 32}},
        .workgroup_bytes = 32 * kKiB,
        .memory_bytes = 8 * kGiB,
        .max_workgroup_threads = 1024,
        .subgroup_min = 32,
        .subgroup_max = 32,
        .subgroup_operations = true,
        .max_buffers = 10,
        .max_binding_bytes = 4 * kGiB - 4,
        .max_buffer_bytes = 4 * kGiB,
        .memory_gb_per_second = 68,
        .f32_gflop_per_second = 2600}},
      {"webgpu-mobile",
       "a telephone's GPU (Arm Mali, Valhall) under Android, typical",
       GpuKind::Hardware,
       {.f16 = true,
        .workgroup_bytes = 32 * kKiB,
        .max_workgroup_threads = 512,
        .subgroup_min = 16,
        .subgroup_max = 16,
        .subgroup_operations = true,
        .max_buffers = 8,
        .max_binding_bytes = 128 * kMiB,
        .max_buffer_bytes = 256 * kMiB,
        .memory_gb_per_second = 50,
        .f32_gflop_per_second = 1000}},
      {"webgpu-software",
       "Mesa's lavapipe on 2 cores: a CPU that pretends to be a GPU",
       GpuKind::Software,
       {.f16 = true,
        .workgroup_bytes = 32 * kKiB,
        .max_workgroup_threads = 1024,
        .subgroup_min = 8,
        .subgroup_max = 8,
        .subgroup_operations = true,
        .max_buffers = 10,
        .max_binding_bytes = 128 * kMiB,
        .max_buffer_bytes = 4 * kGiB - 1,
        .memory_gb_per_second = 7.4,
        .f32_gflop_per_second = 23}},
  };
}

Target target_of(const GpuRow& row) {
  Target target = webgpu_target(row.kind, row.hardware);
  target.name = row.name;
  target.description = row.description;
  return target;
}

}  // namespace

const std::vector<Target>& named_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> all;
    for (const CpuRow& row : kCpus) all.push_back(target_of(row));
    for (const GpuRow& row : gpu_rows()) all.push_back(target_of(row));
    return all;
  }();
  return targets;
}

}  // namespace anneal
