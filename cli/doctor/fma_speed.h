// The most float arithmetic this CPU does with code of ours: what products are measured by.
#pragma once

namespace anneal::cli {

// GFLOP/s of f32 multiply-adds that only touch registers, compiled now, on so many threads.
double fma_speed(int threads);

}  // namespace anneal::cli
