#include "replay.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/key.h"
#include "codegen/target_kernels.h"
#include "codegen/wgsl/kernel_shader.h"
#include "kernel/program/program_content.h"
#include "runtime/inspect/pass_text.h"
#include "runtime/program/distinct_bodies.h"
#include "schedule/work_count.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr std::string_view kSection = "== ";

// Half of a key: enough to tell a few thousand kernels apart.
std::string hash_of(std::string_view text) {
  KeyBuilder builder(1);
  builder.add(text);
  return to_text(builder.finish()).substr(0, 16);
}

// Which buffers parts work on, in which order, and what each computes.
std::string schedule_hash(const Schedule& schedule) {
  std::string text;
  for (const ScheduleBuffer& buffer : schedule.buffers)
    text += fmt::format("{} {} {};", name(buffer.dtype), bounds(buffer.elements).max, buffer.tile);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases) {
      text += "phase\n";
      for (const KernelPart& part : phase) {
        text += to_text(part.body);
        for (int argument : part.arguments) text += fmt::format(" {}", argument);
      }
    }
  return hash_of(text);
}

std::string kernel_line(const KernelBody& body, const std::vector<int>& arguments,
                        const Schedule& schedule, const ReplayTarget& target) {
  const LowerOptions options{.capabilities = target.capabilities, .describe = true};
  if (target.language != Language::Wgsl) {
    const LoweredBody lowered = lower_for(body, options);
    return fmt::format("{} | {} cells, program {}", lowered.plan, bounds(lowered.cells).max,
                       hash_of(content(lowered.program)));
  }
  const GpuKernel kernel = make_gpu_kernel(body, options);
  const wgsl::Shader shader =
      shader_of(kernel, target.capabilities, expected_memory(kernel.program, schedule, arguments));
  return fmt::format("{} | {} cells, program {}, wgsl {}", kernel.plan, bounds(kernel.cells).max,
                     hash_of(content(kernel.program)), hash_of(shader.text));
}

// "mlp for cpu-avx2", and its lines.
using Sections = std::map<std::string_view, std::vector<std::string_view>>;

Sections sections_of(std::string_view text) {
  Sections sections;
  std::vector<std::string_view>* current = nullptr;
  for (std::string_view line : lines_of(text)) {
    if (line.starts_with(kSection))
      current = &sections[line.substr(kSection.size(), line.find(':') - kSection.size())];
    if (current) current->push_back(line);
  }
  return sections;
}

// By the longest common subsequence.
std::string difference(const std::vector<std::string_view>& was,
                       const std::vector<std::string_view>& is) {
  const size_t rows = was.size(), columns = is.size();
  std::vector<std::vector<int>> common(rows + 1, std::vector<int>(columns + 1, 0));
  for (size_t i = rows; i-- > 0;)
    for (size_t k = columns; k-- > 0;)
      common[i][k] =
          was[i] == is[k] ? 1 + common[i + 1][k + 1] : std::max(common[i + 1][k], common[i][k + 1]);
  std::string text;
  size_t i = 0, k = 0;
  while (i < rows || k < columns) {
    if (i < rows && k < columns && was[i] == is[k])
      ++i, ++k;
    else if (i < rows && (k == columns || common[i + 1][k] >= common[i][k + 1]))
      text += fmt::format("- {}\n", was[i++]);
    else
      text += fmt::format("+ {}\n", is[k++]);
  }
  return text;
}

}  // namespace

std::vector<ReplayTarget> replay_targets() {
  std::vector<ReplayTarget> targets;
  for (const Target& target : named_targets()) {
    targets.push_back({target.name, capabilities_of(target), target.language});
    const Capabilities high = capabilities_of(target, {.precision = MatmulPrecision::High});
    if (high.matrix_element_bytes > 0)
      targets.push_back({target.name + " with matrix units", high, target.language});
  }
  return targets;
}

std::string replay(const ReplayProgram& program, const ReplayTarget& target) {
  Graph graph;
  GraphScope scope(graph);
  const Schedule schedule =
      schedule_for(simplified_for(program.build(), target.capabilities), target.capabilities);
  GraphScope schedule_scope(*schedule.graph);

  const DistinctBodies distinct = distinct_bodies(schedule);
  std::vector<int> counts(distinct.bodies.size(), 0);
  std::vector<const std::vector<int>*> arguments(distinct.bodies.size(), nullptr);
  size_t parts = 0;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        const auto body = static_cast<size_t>(distinct.of_part[parts++]);
        if (++counts[body] == 1) arguments[body] = &part.arguments;
      }
  std::string text = fmt::format("{}{} for {}: {} kernels, {} parts, schedule {}, arena {}\n",
                                 kSection, program.name, target.name, schedule.kernels.size(),
                                 parts, schedule_hash(schedule), count_memory(schedule).arena);
  for (size_t i = 0; i < distinct.bodies.size(); ++i)
    text += fmt::format("{} {}\n", counts[i],
                        kernel_line(*distinct.bodies[i], *arguments[i], schedule, target));
  return text;
}

std::string replay_difference(std::string_view was, std::string_view is) {
  const Sections before = sections_of(was), after = sections_of(is);
  std::string text;
  for (const auto& [name, lines] : before) {
    const auto found = after.find(name);
    if (found == after.end())
      text += fmt::format("{}\n- is no longer made\n", name);
    else if (std::string changed = difference(lines, found->second); !changed.empty())
      text += fmt::format("{}\n{}", name, changed);
  }
  for (const auto& [name, lines] : after)
    if (!before.contains(name)) text += fmt::format("{}\n{}", name, difference({}, lines));
  return text;
}

}  // namespace anneal
