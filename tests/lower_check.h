// Lowers a body in several ways and compares what the programs do with what the body says.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "kernel/program/program.h"
#include "schedule/schedule.h"

namespace anneal {

// Small numbers, none of them zero.
Value random_value(DType dtype, int64_t elements, std::mt19937_64& random);

// Lanes are threads, with units for products of matrices.
Capabilities matrix_device();

// The programs of all parts, in order.
std::vector<Program> programs_of(const Schedule& schedule, const Capabilities& capabilities);

// Fails the running test where a lowered program differs. `sizes` are the body's variables.
void check_lowering(const KernelBody& body, const std::vector<int64_t>& sizes = {},
                    uint64_t seed = 1);

}  // namespace anneal
