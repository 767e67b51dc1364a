#include "runtime/inspect/kernel_listing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "codegen/target_kernels.h"
#include "runtime/execute/debug_lines.h"
#include "runtime/inspect/node_count.h"
#include "runtime/program/distinct_bodies.h"
#include "runtime/program/scheduled_program.h"
#include "schedule/kernel_name.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr std::array kPhases{Phase::Forward, Phase::Backward, Phase::Update};

// Phases by structure: a schedule has copies of the program's nodes.
using PhaseTable = std::map<Key, Phase>;

PhaseTable phase_table(const ScheduledProgram& program) {
  PhaseTable table;
  if (program.watched.empty()) return table;
  std::vector<NodeRef> roots = program.values;
  for (const auto* more : {&program.watched, &program.assigns})
    roots.insert(roots.end(), more->begin(), more->end());
  const NodeMap<Phase> phase_of = phases(program.values, program.watched, program.assigns);
  for (NodeRef node : topological_order(roots))
    if (const Phase* phase = phase_of.find(node)) table[node->key] = *phase;
  return table;
}

std::vector<Phase> phases_of(const Kernel& kernel, const PhaseTable& table) {
  std::array<bool, kPhases.size()> found{};
  for (NodeRef node : kernel.nodes)
    if (auto entry = table.find(node->key); entry != table.end())
      found[static_cast<size_t>(entry->second)] = true;
  std::vector<Phase> result;
  for (Phase phase : kPhases)
    if (found[static_cast<size_t>(phase)]) result.push_back(phase);
  return result;
}

// Each different body is lowered once. Names are those of functions, which must differ.
void add_kernels(KernelListing& listing, const PhaseTable& table,
                 const Capabilities& capabilities) {
  const DistinctBodies distinct = distinct_bodies(listing.schedule);
  std::vector<LoweredBody> lowered;
  for (const KernelBody* body : distinct.bodies)
    lowered.push_back(lower_for(*body, {.capabilities = capabilities}));
  size_t next = 0;
  for (const Kernel& kernel : listing.schedule.kernels) {
    ListedKernel listed{
        kernel_name(kernel), phases_of(kernel, table), kernel.nodes.size(), count_work(kernel), {}};
    for (size_t phase = 0; phase < kernel.phases.size(); ++phase)
      for (const KernelPart& part : kernel.phases[phase]) {
        const LoweredBody& body = lowered[static_cast<size_t>(distinct.of_part[next++])];
        listed.parts.push_back({phase, &part, body.program, bounds(body.cells).max});
        listed.parts.back().program.name =
            fmt::format("kernel_{}_{}", listing.kernels.size(), listed.parts.size() - 1);
      }
    listing.work += listed.work;
    listing.kernels.push_back(std::move(listed));
  }
}

}  // namespace

bool ListedKernel::crosses() const {
  return std::ranges::count(step_phases, Phase::Forward) > 0 &&
         std::ranges::count(step_phases, Phase::Backward) > 0;
}

int64_t ListedKernel::cells() const {
  int64_t sum = 0;
  for (const ListedPart& part : parts) sum += part.cells;
  return sum;
}

size_t KernelListing::crossing() const {
  return static_cast<size_t>(std::ranges::count_if(kernels, &ListedKernel::crosses));
}

KernelListing list_kernels(const CanonicalProgram& program, const Capabilities& capabilities,
                           std::string_view where, std::span<const NodeRef> gradients) {
  const auto start = std::chrono::steady_clock::now();
  Graph graph;
  const GraphScope building(graph);
  const CanonicalProgram::Built built = program.build(graph);
  std::vector<NodeRef> watched;
  for (NodeRef gradient : gradients)
    if (NodeRef image = program.image(built, gradient)) watched.push_back(image);
  ScheduledProgram scheduled = schedule_built(built, capabilities, watched);
  auto roots_of = [](std::vector<NodeRef> values, const std::vector<NodeRef>& assigns) {
    values.insert(values.end(), assigns.begin(), assigns.end());
    return values;
  };
  KernelListing listing;
  listing.key = program.exact_key();
  listing.nodes_before = count_nodes(roots_of(built.values, built.assigns));
  listing.nodes = count_nodes(roots_of(scheduled.values, scheduled.assigns));
  const PhaseTable table = phase_table(scheduled);
  listing.schedule = std::move(scheduled.schedule);
  const GraphScope scope(*listing.schedule.graph);
  listing.memory = count_memory(listing.schedule);
  plan_memory_of(listing.schedule, built.variables);
  add_kernels(listing, table, capabilities);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  debug_plan(listing.key, where, listing.schedule, took.count());
  return listing;
}

}  // namespace anneal
