#include "runtime/program/compiled_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/progress.h"
#include "codegen/target_kernels.h"
#include "ir/node_map.h"
#include "rewrite/passes.h"
#include "schedule/work_count.h"
#include "transform/simplify.h"

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

  const std::vector<NodeRef> simple = simplify_program(roots);
  std::vector<NodeRef> wanted;  // of the scheduler, each once
  NodeMap<size_t> places;       // in it
  std::vector<size_t> wanted_of(built.values.size());
  for (size_t i = 0; i < built.values.size(); ++i) {
    values_.push_back({-1, simple[i]->op == Op::Buffer ? slot_of(simple[i]) : -1});
    if (simple[i]->op == Op::Buffer) continue;
    const auto [place, fresh] = places.insert(simple[i], wanted.size());
    wanted_of[i] = *place;
    if (fresh) wanted.push_back(simple[i]);
  }
  for (NodeRef assign : std::span(simple).subspan(built.values.size())) {
    if (assign->op != Op::Assign)
      throw InternalError(fmt::format("an assignment became {}", name(assign->op)));
    assigned_slots_.push_back(slot_of(assign->source(0)));
    if (assign->source(0) != assign->source(1)) wanted.push_back(assign);
  }
  schedule_ = schedule_for(wanted, device.capabilities());
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].slot < 0) values_[i].buffer = schedule_.outputs[wanted_of[i]];
  for (const ScheduleBuffer& buffer : schedule_.buffers)
    slots_.push_back(buffer.external ? slot_of(buffer.external) : -1);
  for (const Kernel& kernel : schedule_.kernels) phases_ += static_cast<int>(kernel.phases.size());
  check_limits(device);
  plan_memory_for(built.variables);
  if (phases_ > 0) executable_ = device.compile(schedule_, built.variables);
  schedule_.graph->forget_memories();
}

void CompiledProgram::plan_memory_for(std::span<const NodeRef> variables) {
  PassRun run("memory", "memory-plan", "bytes");
  run.begin();
  planner_ = std::make_unique<MemoryPlanner>(schedule_, variables);
  run.end();
  PassRun::Outcome outcome;
  if (run.wants_sizes()) {
    const GraphScope scope(*schedule_.graph);
    const MemoryCount memory = count_memory(schedule_);
    outcome = {memory.temporaries > 0, {0, memory.temporaries}, {0, memory.arena}, {}, {}};
  }
  run.finish(outcome);
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
  std::lock_guard lock(mutex_);
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
