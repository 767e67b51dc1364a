// What devices have that say nothing else: a target without a language, and times by the host's
// clock, right where nothing is left running.
#include "runtime/device/device.h"

#include <chrono>

#include "runtime/device/kernel_bench.h"

namespace anneal {

std::vector<double> Executable::run_timed(const RunArguments& arguments,
                                          std::span<const int> bounds) const {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const Clock::time_point start = Clock::now();
    run(arguments, bounds[i], bounds[i + 1]);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

std::vector<int> kernel_bounds(const Schedule& schedule) {
  std::vector<int> bounds{0};
  for (const Kernel& kernel : schedule.kernels)
    bounds.push_back(bounds.back() + static_cast<int>(kernel.phases.size()));
  return bounds;
}

const Target& Device::target() const {
  static const Target none;
  return none;
}

std::unique_ptr<KernelBench> Device::kernel_bench() { return nullptr; }

ShiftedBodies KernelBench::bodies_of(const Schedule& schedule) const {
  DistinctBodies distinct = distinct_bodies(schedule);
  return {std::move(distinct.bodies), std::move(distinct.of_part), {}, {}};
}

}  // namespace anneal
