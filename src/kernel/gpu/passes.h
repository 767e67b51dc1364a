// The low-level program on its way to a GPU: passes that make explicit what the threads of a
// workgroup do. Every GPU backend prints what comes out of them, and decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/gpu/argument_memory.h"
#include "kernel/program/program.h"
#include "rewrite/passes.h"

namespace anneal {

struct GpuPassOptions {
  int64_t most_elements = 0;  // of any buffer
  ArgumentMemory memory = {};
  int subgroup = 0;           // threads of every subgroup, which exchange values; 0: none do
  bool matrix_units = false;  // the device has the unit that the program's matrices are for
  std::vector<std::string> disabled = {};
};
const PassTable<Program, GpuPassOptions>& gpu_passes();

// The first of them: every lane is a thread. An internal error where vectors differ in length.
void lanes_to_threads(Program& program);

// Of a program that lower() made for threads: all passes. An internal error where the result is no
// valid program: drivers are given nothing else.
Program gpu_program(Program program, const GpuPassOptions& options = {});

}  // namespace anneal
