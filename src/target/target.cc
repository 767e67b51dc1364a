#include "target/target.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/call_site.h"

namespace anneal {
namespace {

// Tiles of operands, and one of sums for each subgroup, of the smallest rectangle.
constexpr int64_t kLeastBytesOfMatrices = 30 << 10;

Capabilities simd_capabilities(const Hardware& hardware, const Tuning& tuning) {
  Capabilities capabilities;
  capabilities.vector_bytes = hardware.vector_bytes;
  capabilities.cores = hardware.cores;
  capabilities.scale_instruction = hardware.scale_instruction;
  capabilities.vector_registers = std::min(hardware.vector_registers, tuning.most_registers);
  if (hardware.l1_bytes > 0)
    capabilities.nearest_memory_bytes = std::clamp<int64_t>(hardware.l1_bytes, 16 << 10, 256 << 10);
  if (hardware.l2_bytes > 0)  // half of it, for what else passes through
    capabilities.fast_memory_bytes = std::clamp<int64_t>(hardware.l2_bytes / 2, 128 << 10, 4 << 20);
  if (hardware.l3_bytes > 0) {
    // The rest is for what is read and written in between.
    capabilities.streaming_bytes = hardware.l3_bytes / 4;
    capabilities.tile_memory_bytes = std::clamp<int64_t>(hardware.l3_bytes / 4, 1 << 20, 16 << 20);
  }
  return capabilities;
}

// The bytes of an f16 in shared memory that a matrix unit reads: 2, or a word where the unit is
// written out; 0 where products use none.
int matrix_element_bytes(const Hardware& hardware, const Tuning& tuning,
                         MatmulPrecision precision) {
  if (!tuning.stage_products || hardware.workgroup_bytes < kLeastBytesOfMatrices) return 0;
  if (tuning.emulate_matrix_unit) return 4;
  const bool has_unit = std::ranges::count(hardware.matrix_units, kMatrixUnit) > 0;
  return has_unit && precision == MatmulPrecision::High ? 2 : 0;
}

Capabilities simt_capabilities(const Hardware& hardware, const Tuning& tuning,
                               MatmulPrecision precision) {
  Capabilities capabilities;
  capabilities.workgroup_threads = tuning.workgroup_threads;
  capabilities.most_workgroup_threads =
      std::min(hardware.max_workgroup_threads, tuning.most_workgroup_threads);
  capabilities.subgroup_threads = std::max(32, hardware.subgroup_max);
  if (hardware.subgroup_operations && hardware.subgroup_min == hardware.subgroup_max)
    capabilities.fixed_subgroup_threads = hardware.subgroup_min;
  capabilities.workgroup_bytes = hardware.workgroup_bytes;
  capabilities.parallel_threads = tuning.parallel_threads;
  capabilities.stage_products = tuning.stage_products;
  capabilities.vector_bytes = 4 * tuning.workgroup_threads;
  capabilities.vector_registers = tuning.most_registers;
  capabilities.fast_memory_bytes = hardware.workgroup_bytes;
  capabilities.nearest_memory_bytes = hardware.workgroup_bytes;
  capabilities.tile_memory_bytes = hardware.workgroup_bytes;
  capabilities.matrix_element_bytes = matrix_element_bytes(hardware, tuning, precision);
  return capabilities;
}

}  // namespace

MatmulPrecision parse_matmul_precision(std::string_view text, std::string_view source) {
  if (text == "full") return MatmulPrecision::Full;
  if (text == "high") return MatmulPrecision::High;
  fail(fmt::format("{} is \"{}\", which is no precision of products", source, text),
       "it is full, or high where units for matrices may be used");
}

Capabilities capabilities_of(const Target& target, const Wishes& wishes) {
  const Hardware& hardware = target.hardware;
  const Tuning& tuning = target.tuning;
  Capabilities capabilities = hardware.execution == Execution::Simd
                                  ? simd_capabilities(hardware, tuning)
                                  : simt_capabilities(hardware, tuning, wishes.precision);
  capabilities.max_buffers = hardware.max_buffers;
  capabilities.max_buffer_bytes = std::min(hardware.max_binding_bytes, hardware.max_buffer_bytes);
  capabilities.tiles = true;
  capabilities.f64 = hardware.f64;
  capabilities.large_elements = tuning.large_elements;
  capabilities.large_elements_with_room = tuning.large_elements_with_room;
  capabilities.flops_per_byte = tuning.flops_per_byte;
  capabilities.memory_gb_per_second = hardware.memory_gb_per_second;
  capabilities.f32_gflop_per_second = hardware.f32_gflop_per_second;
  capabilities.least_matrix_work = tuning.least_matrix_work;
  capabilities.winograd_channels = tuning.winograd_channels;
  capabilities.winograd_tiles = tuning.winograd_tiles;
  capabilities.schedule = tuning.schedule;
  capabilities.arena_bytes = hardware.max_buffer_bytes;
  for (int64_t room : {hardware.memory_bytes, wishes.memory_bytes})
    if (room > 0) capabilities.arena_bytes = std::min(capabilities.arena_bytes, room);
  return capabilities;
}

Target cpu_target(int vector_bytes, const Machine& machine) {
  Target target;
  target.name = "cpu";
  target.description = machine.cpu;
  target.language = Language::MachineCode;
  Hardware& hardware = target.hardware;
  hardware.cores = machine.cores;
  hardware.vector_bytes = vector_bytes;
  // Registers of 64 bytes are AVX-512.
  hardware.vector_registers = vector_bytes >= 64 ? 32 : 16;
  hardware.scale_instruction = vector_bytes >= 64;
  hardware.f64 = true;
  hardware.max_buffers = 1024;  // they are addresses in a table: only code size limits them
  for (const CacheLevel& cache : machine.caches) {
    if (cache.kind == "instruction" || cache.bytes <= 0) continue;
    if (cache.level == 1) hardware.l1_bytes = cache.bytes;
    if (cache.level == 2) hardware.l2_bytes = cache.bytes;
    if (cache.level == 3) hardware.l3_bytes = cache.bytes;
  }
  return target;
}

Target webgpu_target(GpuKind kind, const Hardware& limits) {
  Target target;
  target.name = "webgpu";
  target.language = Language::Wgsl;
  target.hardware = limits;
  target.hardware.execution = Execution::Simt;
  Tuning& tuning = target.tuning;
  if (kind == GpuKind::Software) {
    // A thread of a core runs a workgroup, and its shared memory is memory like any other.
    tuning.workgroup_threads = 32;
    tuning.most_workgroup_threads = 32;
    tuning.parallel_threads = 64;
    tuning.stage_products = false;
  } else {
    // Tiles leave most threads of a GPU idle, and its memory is fast.
    tuning.large_elements = int64_t{1} << 26;
    tuning.large_elements_with_room = int64_t{1} << 28;
    tuning.flops_per_byte = 4;
  }
  return target;
}

const Target* find_target(std::string_view name) {
  const auto row = std::ranges::find(named_targets(), name, &Target::name);
  return row == named_targets().end() ? nullptr : &*row;
}

}  // namespace anneal
