// The benchmarks, one function each; every row goes to the context's report.
#pragma once

#include "cli/bench/timing.h"

namespace anneal::cli {

void bench_gemm(const BenchContext& context);       // matrix products
void bench_conv(const BenchContext& context);       // convolutions and their gradients
void bench_rows(const BenchContext& context);       // what is bound by memory
void bench_attention(const BenchContext& context);  // memory and time of attention
void bench_train(const BenchContext& context);      // training steps
void bench_compile(const BenchContext& context);    // how long compiling takes

}  // namespace anneal::cli
