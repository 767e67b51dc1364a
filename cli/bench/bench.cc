// The table of benchmarks, and the threads and devices they run with.
#include "cli/bench/bench.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "cli/bench/cases.h"
#include "cli/bench/compiler.h"
#include "cli/failure.h"

namespace anneal::cli {
namespace {

struct BenchTable {
  std::string_view name;
  void (*run)(const BenchContext&);
};

constexpr BenchTable kBenches[] = {
    {"gemm", bench_gemm},           {"conv", bench_conv},   {"rows", bench_rows},
    {"attention", bench_attention}, {"train", bench_train}, {"compile", bench_compile},
};
constexpr std::string_view kCompiler = "compiler", kAll = "all";

// One, and as many as there are cores, which a GPU does not use.
std::vector<int> default_threads(const ChosenDevice& device) {
  if (device.runs_beside_host()) return {1};
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return cores == 1 ? std::vector{1} : std::vector{1, cores};
}

}  // namespace

std::vector<std::string_view> bench_names() {
  std::vector<std::string_view> names;
  for (const BenchTable& row : kBenches) names.push_back(row.name);
  names.insert(names.end(), {kCompiler, kAll});
  return names;
}

bool bench(const BenchOptions& options) {
  const std::vector<std::string_view> names = bench_names();
  if (std::ranges::find(names, options.name) == names.end())
    fail_unknown("bench", options.name, names);
  if (options.name == kCompiler) return bench_compiler(options.json);

  const ChosenDevice device(options.device);
  BenchReport report(options.json);
  bool first = true;
  for (const int threads : options.threads.empty() ? default_threads(device) : options.threads) {
    Peers peers(threads, device.runs_beside_host() ? PeerDevice::Cuda : PeerDevice::Cpu);
    const BenchContext context{options, report,  peers,
                               device,  threads, std::exchange(first, false)};
    set_threads(threads);
    for (const BenchTable& row : kBenches)
      if (options.name == row.name || options.name == kAll) row.run(context);
  }
  if (report.empty())
    throw UsageError(fmt::format("no case of {} contains '{}'", options.name, options.only),
                     fmt::format("anneal bench {} runs them all", options.name));
  report.finish();
  return true;
}

}  // namespace anneal::cli
