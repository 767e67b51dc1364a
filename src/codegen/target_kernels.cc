#include "codegen/target_kernels.h"

#include "codegen/backends.h"
#include "codegen/wgsl/kernel_shader.h"
#include "schedule/graph/conv_rules.h"
#include "schedule/memory/memory_plan.h"
#include "target/questions.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

bool has_room(const Schedule& schedule, const Capabilities& capabilities) {
  const MemoryPlan plan =
      plan_memory(schedule, [](NodeRef variable) { return variable->arg.symbol->second; });
  return plan.largest_bytes() <= capabilities.max_buffer_bytes &&
         plan.arena_bytes <= capabilities.arena_bytes;
}

bool has_room_for_tiles(const Schedule& schedule, const Capabilities& capabilities) {
  if (!bounds_fast_memory(capabilities)) return true;
  GraphScope scope(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        if (!part.body.tiles.empty() && !fits_group(part.body, capabilities)) return false;
  return true;
}

// ---- forms of source

std::string ir_text(const Target&, const Capabilities&, const Schedule&, const KernelPart& part,
                    const Program&) {
  return to_text(part.body);
}
std::string program_text(const Target& target, const Capabilities& capabilities,
                         const Schedule& schedule, const KernelPart& part, const Program& program) {
  if (target.hardware.execution == Execution::Simd) return to_text(program);
  const GpuKernel kernel{.program = program, .most_elements = most_elements(part.body)};
  return to_text(
      gpu_program(kernel, capabilities, expected_memory(program, schedule, part.arguments)));
}
std::string wgsl_text(const Target&, const Capabilities& capabilities, const Schedule& schedule,
                      const KernelPart& part, const Program&) {
  const GpuKernel kernel = make_gpu_kernel(part.body, {.capabilities = capabilities});
  return shader_of(kernel, capabilities, expected_memory(kernel.program, schedule, part.arguments))
      .text;
}

}  // namespace

std::vector<NodeRef> simplified_for(std::span<const NodeRef> roots,
                                    const Capabilities& capabilities, RewriteLog* log,
                                    const DisabledRules& disabled) {
  return simplify_program(choose_convolutions(roots, capabilities, log, disabled), log, disabled);
}

Schedule schedule_for(std::span<const NodeRef> roots, const Capabilities& capabilities) {
  ScheduleOptions options{.capabilities = capabilities, .disabled = {}};
  if (capabilities.large_elements_with_room > capabilities.large_elements) {
    options.capabilities.large_elements = capabilities.large_elements_with_room;
    Schedule schedule = schedule_program(roots, options);
    if (has_room(schedule, capabilities) && has_room_for_tiles(schedule, capabilities))
      return schedule;
    options.capabilities.large_elements = capabilities.large_elements;
  }
  Schedule schedule = schedule_program(roots, options);
  if (has_room_for_tiles(schedule, capabilities)) return schedule;
  options.capabilities.tiles = false;
  return schedule_program(roots, options);
}

LoweredBody lower_for(const KernelBody& body, const LowerOptions& options) {
  if (!bounds_fast_memory(options.capabilities)) return lower(body, options);
  GpuKernel kernel = make_gpu_kernel(body, options);
  return {std::move(kernel.program), kernel.cells, std::move(kernel.plan),
          std::move(kernel.refused)};
}

std::vector<PlanChoice> plan_choices_for(const KernelBody& body, const LowerOptions& options) {
  if (!bounds_fast_memory(options.capabilities)) return plan_choices(body, options);
  return plan_choices(body, fitting_options(body, options));
}

const std::vector<SourceForm>& all_source_forms() {
  static const std::vector<SourceForm> all = [] {
    std::vector<SourceForm> forms{{"ir", Language::None, ir_text},
                                  {"program", Language::None, program_text}};
    for (const Backend* backend : backends())
      forms.insert(forms.end(), backend->forms.begin(), backend->forms.end());
    forms.push_back({"wgsl", Language::Wgsl, wgsl_text});
    return forms;
  }();
  return all;
}

std::vector<std::string_view> source_forms(const Target& target) {
  std::vector<std::string_view> names;
  for (const SourceForm& form : all_source_forms())
    if (form.language == Language::None || form.language == target.language)
      names.push_back(form.name);
  return names;
}

}  // namespace anneal
