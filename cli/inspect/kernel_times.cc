#include "cli/inspect/kernel_times.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ir/graph.h"
#include "schedule/memory/memory_plan.h"
#include "symbolic/bounds.h"

namespace anneal::cli {
namespace {

constexpr int kRuns = 5;
constexpr double kMostSeconds = 2;  // in which no further run begins

// Small numbers above zero, which nothing overflows with; integers are 0, a position in every axis.
std::vector<std::byte> made_up(DType dtype, int64_t bytes) {
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  if (dtype != DType::F32) return data;
  for (size_t i = 0; i < data.size() / sizeof(float); ++i) {
    const float value = static_cast<float>(i % 7 + 1) / 64;
    std::memcpy(data.data() + i * sizeof(float), &value, sizeof(float));
  }
  return data;
}

int64_t largest(NodeRef variable) { return bounds(variable).max; }

// The symbolic sizes of its buffers, which are those of its loops, too.
std::vector<NodeRef> variables_of(const Schedule& schedule) {
  std::vector<NodeRef> elements, variables;
  for (const ScheduleBuffer& buffer : schedule.buffers) elements.push_back(buffer.elements);
  for (NodeRef node : topological_order(elements))
    if (node->op == Op::Variable) variables.push_back(node);
  return variables;
}

// Memory for everything a schedule speaks of.
class Memory {
 public:
  Memory(const Schedule& schedule, Device& device) : device_(device) {
    const MemoryPlan plan = plan_memory(schedule, largest);
    const BufferRef arena = plan.arena_bytes > 0 ? allocate(plan.arena_bytes) : BufferRef{};
    for (size_t i = 0; i < schedule.buffers.size(); ++i) {
      const ScheduleBuffer& buffer = schedule.buffers[i];
      places_.push_back(buffer.is_temporary() ? BufferRef{arena.memory, plan.offsets[i]}
                                              : allocate(plan.bytes[i]));
      if (buffer.external) device.copy_in(made_up(buffer.dtype, plan.bytes[i]), places_.back());
    }
  }
  std::span<const BufferRef> places() const { return places_; }

 private:
  BufferRef allocate(int64_t bytes) {
    memory_.push_back(device_.allocate(bytes));
    return {memory_.back()->handle(), 0};
  }

  Device& device_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::vector<BufferRef> places_;
};

}  // namespace

KernelTimes time_kernels(const Schedule& schedule, Device& device) {
  KernelTimes times;
  if (schedule.kernels.empty()) return times;
  const std::vector<NodeRef> variables = variables_of(schedule);
  std::vector<int64_t> sizes;
  for (NodeRef variable : variables) sizes.push_back(largest(variable));
  const std::unique_ptr<Executable> executable = device.compile(schedule, variables);
  const Memory memory(schedule, device);
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
