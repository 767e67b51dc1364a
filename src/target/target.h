// What kernels are made for, as data: hardware facts and tuning choices, and apart from both what a
// user wishes. Needs no device: named targets come with the program, and a device makes its own
// from what it finds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/machine.h"
#include "ir/dtype.h"
#include "target/capabilities.h"
#include "target/matrix_unit.h"

namespace anneal {

enum class Execution : uint8_t {
  Simd,  // lanes are parts of a vector register
  Simt,  // lanes are threads of a workgroup, which share memory
};

// What kernels are written in.
enum class Language : uint8_t { None, MachineCode, Wgsl };

// Facts, which no choice of ours changes. 0: there is none, or it is not known.
struct Hardware {
  Execution execution = Execution::Simd;
  int cores = 1;  // of a CPU, that share the work of a kernel

  // Registers.
  int vector_bytes = 0;            // of one, where lanes are parts of it
  int vector_registers = 0;        // of a core
  bool scale_instruction = false;  // x * 2^n in one
  bool f16 = false, f64 = false;   // arithmetic
  std::vector<MatrixUnit> matrix_units = {};

  // Memories.
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // data caches that a core sees
  int64_t workgroup_bytes = 0;                       // shared by the threads of a workgroup
  int64_t memory_bytes = 0;

  // Threads.
  int max_workgroup_threads = 0;
  int subgroup_min = 0, subgroup_max = 0;  // threads of a subgroup
  bool subgroup_operations = false;        // threads of one exchange values in registers

  // Limits of one kernel and of one buffer.
  int max_buffers = 0;
  int64_t max_binding_bytes = INT64_MAX, max_buffer_bytes = INT64_MAX;

  // Measured or typical; for rooflines and for people.
  double memory_gb_per_second = 0, f32_gflop_per_second = 0;

  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// Choices that were measured to do well, on the machine that the target's description names.
struct Tuning {
  int workgroup_threads = 128;       // of most kernels
  int most_workgroup_threads = 256;  // of any
  int64_t parallel_threads = 65536;  // that keep all of it busy
  int most_registers = 64;           // that a plan may fill: of vectors, or of a thread
  bool stage_products = true;        // through shared memory; worth it where that is faster
  // Values of so many elements live in tiles of fast memory instead of buffers.
  int64_t large_elements = 1 << 17;
  int64_t large_elements_with_room = 0;  // the same while the memory budget has room
  double flops_per_byte = 1;             // arithmetic in the time of a byte from memory, to a CPU's
  double least_matrix_work = 1 << 29;    // multiplications that are worth a matrix unit
  // Fewer channels do not fill vectors, fewer tiles do not make up for transforming the weights.
  int64_t winograd_channels = 16, winograd_tiles = 16;
  ScheduleTuning schedule = {};
  // For tests: kernels for a matrix unit that is not there, with what it does written out.
  bool emulate_matrix_unit = false;

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

struct Target {
  std::string name, description;
  Language language = Language::None;
  std::string triple = {}, cpu = {}, features = {};  // in LLVM's words, of machine code
  Hardware hardware = {};
  Tuning tuning = {};

  friend bool operator==(const Target&, const Target&) = default;
};

// Of sums of products of f32.
enum class MatmulPrecision : uint8_t {
  Full,  // as exact as f32 makes them
  High,  // to about 22 bits, of two f16 each on matrix units; without such, as Full
};
// "full" or "high"; for anything else a UserError that begins with `source`, which gave it.
MatmulPrecision parse_matmul_precision(std::string_view text, std::string_view source);

// What a user decides, whatever the target.
struct Wishes {
  MatmulPrecision precision = MatmulPrecision::Full;
  int64_t memory_bytes = 0;  // for the temporaries of a program; 0: what the target has
};

// What schedulers and planners reckon with. Target and wishes alone decide it: no memory is asked
// for and no device opened, so that kernels are the same in every process.
Capabilities capabilities_of(const Target& target, const Wishes& wishes = {});

// A CPU by its registers and caches.
Target cpu_target(int vector_bytes, const Machine& machine);
// Kernels in WGSL on a GPU, or on a CPU that pretends to be one.
enum class GpuKind : uint8_t { Hardware, Software };
Target webgpu_target(GpuKind kind, const Hardware& limits);

// Those that come with the program.
const std::vector<Target>& named_targets();
const Target* find_target(std::string_view name);  // null: there is none

}  // namespace anneal
