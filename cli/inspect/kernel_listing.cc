#include "cli/inspect/kernel_listing.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "cli/inspect/programs.h"
#include "codegen/target_kernels.h"
#include "schedule/kernel_name.h"
#include "symbolic/bounds.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

constexpr std::array kPhases{Phase::Forward, Phase::Backward, Phase::Update};

// Phases by structure: a schedule has copies of the program's nodes.
using PhaseTable = std::map<Key, Phase>;

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

// Names are those of functions, which must differ.
std::vector<ListedPart> lower_parts(const Kernel& kernel, size_t number,
                                    const Capabilities& capabilities) {
  std::vector<ListedPart> parts;
  for (size_t phase = 0; phase < kernel.phases.size(); ++phase)
    for (const KernelPart& part : kernel.phases[phase]) {
      LoweredBody lowered = lower_for(part.body, {.capabilities = capabilities});
      lowered.program.name = fmt::format("kernel_{}_{}", number, parts.size());
      parts.push_back({phase, &part, std::move(lowered.program), bounds(lowered.cells).max});
    }
  return parts;
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

KernelListing list_kernels(const models::Program& program, bool forward,
                           const Capabilities& capabilities) {
  // Loss, gradients and updates are simplified together, as they are compiled together. A step does
  // not keep its gradients; they only tell what is backward.
  std::vector<NodeRef> roots =
      simplify_program(forward ? std::vector{program.loss.node()} : step_roots(program));
  const size_t gradients = forward ? 0 : program.gradients.size();
  const std::span<const NodeRef> all(roots);
  const NodeMap<Phase> phase_of =
      phases(all.first(1), all.subspan(1, gradients), all.subspan(1 + gradients));
  PhaseTable table;
  for (NodeRef node : topological_order(roots))
    if (const Phase* phase = phase_of.find(node)) table[node->key] = *phase;
  roots.erase(roots.begin() + 1, roots.begin() + 1 + static_cast<ptrdiff_t>(gradients));

  KernelListing listing;
  listing.nodes = count_nodes(roots);
  listing.schedule = schedule_for(roots, capabilities);
  GraphScope scope(*listing.schedule.graph);
  listing.memory = count_memory(listing.schedule);
  for (const Kernel& kernel : listing.schedule.kernels) {
    listing.kernels.push_back({kernel_name(kernel), phases_of(kernel, table), kernel.nodes.size(),
                               count_work(kernel),
                               lower_parts(kernel, listing.kernels.size(), capabilities)});
    listing.work += listing.kernels.back().work;
  }
  return listing;
}

}  // namespace anneal::cli
