// Prints the shaders of whole training steps for WebGPU with the least limits there are. The core
// alone makes them, so that two builds of it can be compared.
#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "codegen/target_kernels.h"
#include "models/program.h"
#include "target/target.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

std::vector<NodeRef> roots_of(const models::Program& program) {
  std::vector<NodeRef> roots{program.loss.node()};
  for (const Tensor& update : program.updates) roots.push_back(update.node());
  return roots;
}

void print_shaders(const models::ProgramRow& row, const Target& target, const SourceForm& form) {
  Graph graph;
  const GraphScope scope(graph);
  const Capabilities capabilities = capabilities_of(target);
  const Schedule schedule = schedule_for(simplify_program(roots_of(row.build())), capabilities);
  const GraphScope schedule_scope(*schedule.graph);
  fmt::print("== {}: {} kernels\n", row.name, schedule.kernels.size());
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        const LoweredBody lowered = lower_for(part.body, {.capabilities = capabilities});
        fmt::print("{}\n", form.text(target, capabilities, schedule, part, lowered.program));
      }
}

}  // namespace

int main() try {
  const Target* target = find_target("webgpu-minimum");
  for (const SourceForm& form : all_source_forms())
    if (target && form.name == "wgsl")
      for (const char* name : {"mlp", "conv", "attention", "nanogpt"})
        print_shaders(*models::find_program(name), *target, form);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
