#include "tune/schedule_memory.h"

#include <cstring>

#include "ir/graph.h"
#include "schedule/memory/memory_plan.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

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

}  // namespace

std::vector<NodeRef> variables_of(const Schedule& schedule) {
  std::vector<NodeRef> elements, variables;
  for (const ScheduleBuffer& buffer : schedule.buffers) elements.push_back(buffer.elements);
  for (NodeRef node : topological_order(elements))
    if (node->op == Op::Variable) variables.push_back(node);
  return variables;
}

std::vector<int64_t> largest_sizes(std::span<const NodeRef> variables) {
  std::vector<int64_t> sizes;
  for (NodeRef variable : variables) sizes.push_back(largest(variable));
  return sizes;
}

ScheduleMemory::ScheduleMemory(const Schedule& schedule, Device& device) : device_(device) {
  const MemoryPlan plan = plan_memory(schedule, largest);
  const BufferRef arena = plan.arena_bytes > 0 ? allocate(plan.arena_bytes) : BufferRef{};
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const ScheduleBuffer& buffer = schedule.buffers[i];
    places_.push_back(buffer.is_temporary() ? BufferRef{arena.memory, plan.offsets[i]}
                                            : allocate(plan.bytes[i]));
    if (buffer.external) device.copy_in(made_up(buffer.dtype, plan.bytes[i]), places_.back());
  }
}

BufferRef ScheduleMemory::allocate(int64_t bytes) {
  memory_.push_back(device_.allocate(bytes));
  return {memory_.back()->handle(), 0};
}

}  // namespace anneal
