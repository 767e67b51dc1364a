#include "cli/inspect/kernel_times.h"

#include <algorithm>
#include <chrono>

#include "tune/schedule_memory.h"

namespace anneal::cli {
namespace {

constexpr int kRuns = 5;
constexpr double kMostSeconds = 2;  // in which no further run begins

}  // namespace

KernelTimes time_kernels(const Schedule& schedule, Device& device) {
  KernelTimes times;
  if (schedule.kernels.empty()) return times;
  const std::vector<NodeRef> variables = variables_of(schedule);
  const std::vector<int64_t> sizes = largest_sizes(variables);
  const std::unique_ptr<Executable> executable = device.compile(schedule, variables);
  const ScheduleMemory memory(schedule, device);
  const std::vector<int> bounds = kernel_bounds(schedule);
  const RunArguments arguments{memory.places(), sizes};
  executable->run_timed(arguments, bounds);  // the first run touches memory and makes kernels ready

  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(kMostSeconds));
  do {
    const std::vector<double> seconds = executable->run_timed(arguments, bounds);
    if (times.runs++ == 0) times.seconds = seconds;
    for (size_t i = 0; i < seconds.size(); ++i)
      times.seconds[i] = std::min(times.seconds[i], seconds[i]);
  } while (times.runs < kRuns && Clock::now() < end);
  return times;
}

}  // namespace anneal::cli
