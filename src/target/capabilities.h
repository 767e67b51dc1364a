// What schedulers and planners reckon with, as data: made of a target and of wishes. Nothing above
// codegen asks which device it is.
#pragma once

#include <cstdint>

#include "target/schedule_tuning.h"

namespace anneal {

struct Capabilities {
  int max_buffers = 64;  // bindings of one kernel
  // Of one kernel, as code_size.h counts them: code generators take more than linear time for long
  // ones.
  int64_t most_operations = 4096;
  int64_t max_buffer_bytes = INT64_MAX;
  int vector_bytes = 64;  // of one register, or of one for each thread of a group
  // Lanes are threads of a group, so many of them, whatever they compute with; each can only speak
  // to others through memory. 0: lanes are parts of registers.
  int workgroup_threads = 0;
  int most_workgroup_threads = 0;  // of any group
  int subgroup_threads = 32;       // that run together in any case
  // Of every subgroup, where they can speak to each other; 0: they cannot, or numbers differ.
  int fixed_subgroup_threads = 0;
  int64_t workgroup_bytes = 0;   // of fast memory that the threads of a group share
  int64_t private_bytes = 8192;  // of memory that a thread has to itself; WGSL allows no more
  int64_t parallel_threads = 0;  // that keep the device busy
  bool stage_products = true;    // operands of products are worth copying into fast memory
  int vector_registers = 32;
  int cores = 1;  // that share the cells of a kernel, where lanes are parts of registers
  // Of an f16 in fast memory that units for products of matrices read (see Code::MatrixLeft); 0:
  // there are none, or sums of products shall be as exact as f32 makes them.
  int matrix_element_bytes = 0;
  double least_matrix_work = 1 << 29;       // multiplications of a product that is worth it
  int64_t fast_memory_bytes = 1 << 18;      // for the tiles of one cell (an L2's share)
  int64_t nearest_memory_bytes = 32 << 10;  // for what the innermost loops touch (an L1)
  // What all tiles of one cell may take before it pays to compute them again; where fast memory has
  // no larger one behind it, the same.
  int64_t tile_memory_bytes = 1 << 18;
  bool scale_instruction = false;  // Op::Scale is one
  bool f64 = true;
  // From so many on, values that are made of few and become few are worth living in tiles.
  int64_t large_elements = 1 << 17;
  // From so many on while there is room for all of them: stored they may be faster.
  int64_t large_elements_with_room = 0;
  int64_t arena_bytes = INT64_MAX;  // that room: what the temporaries of a program may take
  bool tiles = false;               // values may live in fast memory between the stores of a kernel
  double flops_per_byte = 1;        // arithmetic that a byte of memory costs, beside a CPU
  // For what kernels are expected to take: measured or typical; 0: nobody knows.
  double memory_gb_per_second = 0, f32_gflop_per_second = 0;
  // Winograd's convolutions pay from so many channels on, of input and of output, and from so many
  // tiles of the result.
  int64_t winograd_channels = 16, winograd_tiles = 16;
  ScheduleTuning schedule = {};
  int64_t streaming_bytes = INT64_MAX;  // what is as large is in no cache when it is read again

  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

}  // namespace anneal
