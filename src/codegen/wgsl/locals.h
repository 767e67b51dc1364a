// What is known of a program before its shader is written: threads, matrices, and whose memory
// locals are.
#pragma once

#include <vector>

#include "kernel/program/program.h"

namespace anneal::wgsl {

int lanes_of(const Program& program);
bool has_matrices(const Program& program);
// By local: each thread has its elements to itself.
std::vector<bool> private_locals(const Program& program);

}  // namespace anneal::wgsl
