#include "codegen/wgsl/gpu_kernel.h"

#include <algorithm>
#include <optional>

#include <anneal/error.h>

#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Lowered so that its tiles fit the memory of a workgroup, if they can: the less is kept there, the
// smaller they are.
std::optional<LoweredBody> lower_within(const KernelBody& body, LowerOptions options) {
  Capabilities& capabilities = options.capabilities;
  std::vector<std::string>& disabled = options.disabled;
  const int64_t most = capabilities.workgroup_bytes;
  while (true) {
    LoweredBody lowered = lower(body, options);
    const wgsl::LocalBytes bytes =
        wgsl::local_bytes(lowered.program, capabilities.matrix_element_bytes == 2);
    if (bytes.of_group <= most && bytes.of_thread <= wgsl::kMostThreadBytes) return lowered;
    if (capabilities.fast_memory_bytes > 1024) {
      capabilities.fast_memory_bytes /= 2;
      capabilities.nearest_memory_bytes /= 2;
      capabilities.tile_memory_bytes /= 2;
    } else if (disabled.empty()) {
      disabled = {"stage", "online-reduction"};
    } else if (disabled.size() == 2) {
      disabled.emplace_back("unroll");
    } else {
      return std::nullopt;
    }
  }
}

// Positions that need more than 31 bits.
bool is_wide(const KernelBody& body) {
  constexpr int64_t kMost = INT32_MAX;
  return std::ranges::any_of(body.buffers,
                             [](NodeRef buffer) { return bounds(buffer->dim(0)).max > kMost; });
}

}  // namespace

GpuKernel make_gpu_kernel(const KernelBody& body, const LowerOptions& options) {
  std::optional<LoweredBody> lowered = lower_within(body, options);
  if (!lowered) throw InternalError("a kernel does not fit the memory of a workgroup");
  return {std::move(lowered->program), lowered->cells, is_wide(body), std::move(lowered->plan)};
}

bool fits_group(const KernelBody& body, const Capabilities& capabilities) {
  return lower_within(body, {.capabilities = capabilities}).has_value();
}

wgsl::Memory memory_of(const Program& program, std::span<const ArgumentPlace> arguments) {
  wgsl::Memory memory;
  memory.same_as.assign(arguments.size(), -1);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentPlace& mine = arguments[i];
    bool only_read = mine.piece != nullptr;
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (!mine.piece || mine.piece != arguments[k].piece) continue;
      if (program.buffers[k].written) only_read = false;
      if (k < i && memory.same_as[i] < 0 && mine.offset == arguments[k].offset)
        memory.same_as[i] = memory.same_as[k] < 0 ? static_cast<int>(k) : memory.same_as[k];
    }
    memory.only_read.push_back(only_read);
  }
  if (std::ranges::count(memory.same_as, -1) == std::ssize(memory.same_as)) memory.same_as.clear();
  return memory;
}

wgsl::Memory expected_memory(const Program& program, const Schedule& schedule,
                             std::span<const int> arguments) {
  std::vector<ArgumentPlace> places;
  for (int number : arguments) {
    const ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(number)];
    if (buffer.is_temporary())
      places.push_back({&schedule, number});
    else
      places.push_back({&buffer, 0});
  }
  return memory_of(program, places);
}

wgsl::Shader shader_of(const GpuKernel& kernel, const Capabilities& capabilities,
                       const wgsl::Memory& memory) {
  return wgsl::write_shader(kernel.program,
                            {kernel.wide, memory, capabilities.fixed_subgroup_threads,
                             capabilities.matrix_element_bytes == 2});
}

}  // namespace anneal
