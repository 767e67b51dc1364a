#include "runtime/execute/debug_lines.h"

#include <numeric>

#include <fmt/format.h>

#include "base/debug.h"
#include "ir/graph.h"
#include "runtime/program/distinct_bodies.h"
#include "schedule/kernel_name.h"
#include "schedule/work_count.h"

namespace anneal {
namespace {

// Sizes that are known only when it runs make work unknown, too.
bool is_static_schedule(const Schedule& schedule) {
  for (const ScheduleBuffer& buffer : schedule.buffers)
    if (!is_static(buffer.elements)) return false;
  return true;
}

// Of work in seconds, in thousands of millions.
std::string rates(const Kernel& kernel, double seconds) {
  const WorkCount work = count_work(kernel);
  const double bytes = work.bytes_read + work.bytes_written;
  return fmt::format(" {:>8.1f} GFLOP/s {:>7.1f} GB/s", work.flops / seconds * 1e-9,
                     bytes / seconds * 1e-9);
}

}  // namespace

void debug_plan(const Key& key, std::string_view where, const Schedule& schedule, double seconds) {
  if (!debugs(Debug::Plans)) return;
  const GraphScope scope(*schedule.graph);
  const MemoryCount memory = count_memory(schedule);
  write_debug(fmt::format(
      "plan {} on {}: {} kernels, {} bodies, {} bytes of inputs, {} of results, {} of "
      "temporaries, {:.1f} ms\n",
      to_text(key), where, schedule.kernels.size(), distinct_bodies(schedule).bodies.size(),
      memory.inputs, memory.outputs, memory.arena, seconds * 1e3));
}

void debug_kernels(const Schedule& schedule, std::span<const double> seconds) {
  const GraphScope scope(*schedule.graph);
  const bool known_work = is_static_schedule(schedule);
  std::string lines;
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const Kernel& kernel = schedule.kernels[i];
    lines += fmt::format("kernel {:>3}  {:<31}", i, kernel_name(kernel));
    if (!seconds.empty()) {
      lines += fmt::format(" {:>10.1f} us", seconds[i] * 1e6);
      if (known_work && seconds[i] > 0) lines += rates(kernel, seconds[i]);
    }
    lines += '\n';
  }
  if (!seconds.empty())
    lines += fmt::format("kernels took {:.1f} us\n",
                         std::accumulate(seconds.begin(), seconds.end(), 0.0) * 1e6);
  else if (!schedule.kernels.empty())
    lines += "kernels without times: the device has no clock\n";
  write_debug(lines);
}

}  // namespace anneal
