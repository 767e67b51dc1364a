// Programs to machine code of a CPU, through LLVM. Must not decide how a kernel computes: every
// instruction is translated as it stands. LLVM's own headers stay out of here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/program/program.h"

namespace anneal {

// What code is made for, in LLVM's words.
struct CpuTarget {
  std::string triple, cpu, features;
  int vector_bytes = 16;  // of one register

  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};

CpuTarget host_target();

// What a Program becomes: the body for each cell in cell_begin <= cell < cell_end.
// `buffers` are the parameters, of which no two overlap, each aligned to its element;
// `local_memory` holds local_bytes(program) and is aligned to kLocalAlignment.
using KernelFunction = void (*)(void* const* buffers, const int64_t* sizes, int64_t cell_begin,
                                int64_t cell_end, void* local_memory);

inline constexpr int64_t kLocalAlignment = 64;
// Where local buffer `number` begins; one beyond the last: the end.
int64_t local_offset(const Program& program, size_t number);
int64_t local_bytes(const Program& program);

// Functions are named by program.name, which must differ. Programs must verify.
std::vector<std::byte> compile_to_object(std::span<const Program* const> programs,
                                         const CpuTarget& target);
std::string assembly(std::span<const Program* const> programs, const CpuTarget& target);
std::string llvm_ir(std::span<const Program* const> programs, const CpuTarget& target);

// What the code depends on besides Program and target: two builds with the same text make the same
// code.
std::string codegen_identity();
std::string llvm_version();

}  // namespace anneal
