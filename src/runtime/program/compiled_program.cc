#include "runtime/program/compiled_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/progress.h"
#include "runtime/program/scheduled_program.h"

namespace anneal {
namespace {

constexpr size_t kRecentSizes = 8;

int slot_of(NodeRef buffer) { return static_cast<int>(buffer->arg.symbol->first); }

}  // namespace

CompiledProgram::CompiledProgram(const CanonicalProgram& program, Device& device,
                                 NumberInputs numbers)
    : numbers_(std::move(numbers)),
      device_(device.name()),
      max_buffer_bytes_(device.capabilities().max_buffer_bytes) {
  const CompileScope compiling;
  Graph graph;
  GraphScope scope(graph);
  const CanonicalProgram::Built built = program.build(graph, numbers_);
  std::vector<NodeRef> roots = built.values;
  roots.insert(roots.end(), built.assigns.begin(), built.assigns.end());
  checks_ = SizeChecks(roots, built.variables);
  std::vector<NodeRef> dims;
  for (NodeRef value : built.values) {
    ranks_.push_back(value->rank());
    dims.insert(dims.end(), value->shape->dims().begin(), value->shape->dims().end());
  }
  dims_ = IndexProgram(dims, built.variables);

  ScheduledProgram scheduled = schedule_built(built, device.capabilities());
  for (size_t i = 0; i < scheduled.values.size(); ++i) {
    const int buffer = scheduled.buffers[i];
    values_.push_back({buffer, buffer < 0 ? slot_of(scheduled.values[i]) : -1});
  }
  for (NodeRef assign : scheduled.assigns) assigned_slots_.push_back(slot_of(assign->source(0)));
  schedule_ = std::move(scheduled.schedule);
  for (const ScheduleBuffer& buffer : schedule_.buffers)
    slots_.push_back(buffer.external ? slot_of(buffer.external) : -1);
  for (const Kernel& kernel : schedule_.kernels) phases_ += static_cast<int>(kernel.phases.size());
  check_limits(device);
  planner_ = plan_memory_of(schedule_, built.variables);
  if (phases_ > 0) executable_ = device.compile(schedule_, built.variables);
  schedule_.graph->forget_memories();
}

void CompiledProgram::check_limits(const Device& device) const {
  const auto most = static_cast<size_t>(device.capabilities().max_buffers);
  for (const Kernel& kernel : schedule_.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        const auto bound =
            static_cast<size_t>(std::ranges::count_if(part.arguments, [&](int buffer) {
              return !schedule_.buffers[static_cast<size_t>(buffer)].tile;
            }));
        if (bound > most)
          fail(fmt::format("a kernel works on {} buffers, device \"{}\" allows {}", bound, device_,
                           most),
               "store parts of the expression with contiguous() or realize()");
      }
}

std::shared_ptr<const SizedProgram> CompiledProgram::sized(std::span<const int64_t> sizes,
                                                           bool* fresh) {
  *fresh = false;
  const Lock lock(mutex_);
  for (auto entry = recent_.begin(); entry != recent_.end(); ++entry)
    if (std::ranges::equal((*entry)->sizes, sizes)) {
      recent_.splice(recent_.begin(), recent_, entry);
      return recent_.front();
    }
  *fresh = true;
  recent_.push_front(make_sized(sizes));
  if (recent_.size() > kRecentSizes) recent_.pop_back();
  return recent_.front();
}

std::shared_ptr<const SizedProgram> CompiledProgram::make_sized(
    std::span<const int64_t> sizes) const {
  checks_.check(sizes);
  auto result = std::make_shared<SizedProgram>();
  result->sizes.assign(sizes.begin(), sizes.end());
  const std::vector<int64_t> dims = dims_.evaluate(sizes);
  auto next = dims.begin();
  for (size_t rank : ranks_) {
    const auto end = next + static_cast<std::ptrdiff_t>(rank);
    result->shapes.emplace_back(next, end);
    next = end;
  }
  result->memory = planner_->plan(sizes);
  if (const int64_t largest = result->memory.largest_bytes(); largest > max_buffer_bytes_)
    fail(fmt::format("{} takes {} bytes, device \"{}\" allows {} a buffer",
                     describe(result->memory.largest), largest, device_, max_buffer_bytes_),
         "split the tensor, or choose another device");
  return result;
}

std::string CompiledProgram::describe(int buffer) const {
  const ScheduleBuffer& row = schedule_.buffers[static_cast<size_t>(buffer)];
  if (row.external) return fmt::format("input {}", slot_of(row.external));
  auto edge = std::ranges::find(schedule_.unfused, buffer, &UnfusedEdge::buffer);
  std::string text = row.output >= 0 ? "a result" : "a temporary";
  if (edge != schedule_.unfused.end() && edge->value && edge->value->origin)
    text += " of " + to_text(*edge->value->origin);
  return text;
}

}  // namespace anneal
