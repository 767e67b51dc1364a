// How ours and a peer are timed: in turns within one run, the least of each side.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/tensor.h>

#include "cli/bench/bench.h"
#include "cli/bench/peers.h"
#include "cli/bench/prepared.h"
#include "cli/bench/report.h"

namespace anneal::cli {

// What a benchmark works with: one number of threads at a time.
struct BenchContext {
  const BenchOptions& options;
  BenchReport& report;
  Peers& peers;
  const ChosenDevice& device;
  int threads;
  bool first;  // of the numbers of threads: for what is the same with any

  bool asked_for(std::string_view name) const;
  // Whether the case was asked for; says that it comes next.
  bool begin(std::string_view bench, std::string_view name) const;
  BenchRow row(std::string_view bench, std::string_view name, std::string_view unit) const;
};

using Run = std::function<double()>;  // runs once and says how many seconds it took

struct Timing {
  double ours = 0;
  PeerTime peer;
};
Timing time_against(const BenchContext& context, const Run& ours, PeerKind kind,
                    std::string_view peer_case);
// The same for two programs of ours.
struct TimingOfTwo {
  double first = 0, second = 0;
};
TimingOfTwo time_both(const BenchContext& context, const Run& first, const Run& second);
double time_alone(const BenchContext& context, const Run& run);

// Adds the row with `work` done per second by each side.
void add_rates(const BenchContext& context, BenchRow row, const Timing& timing, double work);

// Numbers that repeat after a while, of f32 or another float, in memory.
Tensor filled(const std::vector<int64_t>& sizes, int64_t period = 13, DType dtype = DType::F32);

}  // namespace anneal::cli
