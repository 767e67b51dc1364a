#include "runtime/program/scheduled_program.h"

#include <fmt/format.h>

#include "codegen/target_kernels.h"
#include "ir/node_map.h"
#include "rewrite/passes.h"
#include "schedule/work_count.h"

namespace anneal {

ScheduledProgram schedule_built(const CanonicalProgram::Built& built,
                                const Capabilities& capabilities,
                                std::span<const NodeRef> watched) {
  std::vector<NodeRef> roots = built.values;
  roots.insert(roots.end(), built.assigns.begin(), built.assigns.end());
  roots.insert(roots.end(), watched.begin(), watched.end());
  const std::vector<NodeRef> simple = simplified_for(roots, capabilities);
  const auto first_assign = simple.begin() + static_cast<ptrdiff_t>(built.values.size());
  const auto first_watched = first_assign + static_cast<ptrdiff_t>(built.assigns.size());
  ScheduledProgram program;
  program.values.assign(simple.begin(), first_assign);
  program.assigns.assign(first_assign, first_watched);
  program.watched.assign(first_watched, simple.end());

  std::vector<NodeRef> wanted;  // of the scheduler, each once
  NodeMap<size_t> places;       // in it
  for (NodeRef value : program.values)
    if (value->op != Op::Buffer && places.insert(value, wanted.size()).second)
      wanted.push_back(value);
  for (NodeRef assign : program.assigns) {
    if (assign->op != Op::Assign)
      throw InternalError(fmt::format("an assignment became {}", name(assign->op)));
    if (assign->source(0) != assign->source(1)) wanted.push_back(assign);
  }
  program.schedule = schedule_for(wanted, capabilities);
  for (NodeRef value : program.values)
    program.buffers.push_back(
        value->op == Op::Buffer ? -1 : program.schedule.outputs[*places.find(value)]);
  return program;
}

std::unique_ptr<MemoryPlanner> plan_memory_of(const Schedule& schedule,
                                              std::span<const NodeRef> variables) {
  PassRun run("memory", "memory-plan", "bytes");
  run.begin();
  auto planner = std::make_unique<MemoryPlanner>(schedule, variables);
  run.end();
  PassRun::Outcome outcome;
  if (run.wants_sizes()) {
    const GraphScope scope(*schedule.graph);
    const MemoryCount memory = count_memory(schedule);
    outcome = {memory.temporaries > 0, {0, memory.temporaries}, {0, memory.arena}, {}, {}};
  }
  run.finish(outcome);
  return planner;
}

}  // namespace anneal
