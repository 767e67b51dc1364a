// The tables of what can be left out, and the ways to run a program.
#include "graph_runs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "body_interpreter.h"
#include "kernel/lower.h"
#include "program_interpreter.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/cpu/memory.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

// So that a few hundred elements are many.
constexpr double kEager = 4096;

std::vector<Toggle> toggles_of(std::vector<std::string> names) {
  std::vector<Toggle> toggles{{}, {{}, kEager}};
  for (const std::string& name : names) toggles.push_back({{name}, kEager});
  toggles.push_back({std::move(names), kEager});
  return toggles;
}

// An exception is a failure like any other.
std::string guarded(const std::function<std::string()>& check) {
  try {
    return check();
  } catch (const std::exception& error) {
    return fmt::format("throws: {}", error.what());
  }
}

std::string bindings_text(const SizeBinding& binding) {
  std::string text;
  for (const auto& [variable, value] : binding)
    text += fmt::format(" {} = {}", variable->arg.symbol->text(), value);
  return text.empty() ? "" : fmt::format(" (with{})", text);
}

ScheduleOptions options_of(const Toggle& toggle) {
  ScheduleOptions options;
  options.disabled = toggle.names;
  options.eagerness = toggle.eagerness;
  return options;
}

std::string problem_of_bodies(const Schedule& schedule) {
  GraphScope scope(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        if (const std::string problem = verify(part.body); !problem.empty())
          return fmt::format("{}\n{}", problem, to_text(part.body));
  return "";
}

std::vector<int64_t> sizes_of(const KernelPart& part,
                              const std::function<int64_t(NodeRef)>& variable) {
  std::vector<int64_t> sizes;
  for (NodeRef node : part.body.variables) sizes.push_back(variable(node));
  return sizes;
}

// Every part of a schedule as a program.
class LoweredSchedule {
 public:
  LoweredSchedule(const Schedule& schedule, const Toggle& toggle) {
    GraphScope scope(*schedule.graph);
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) {
          LoweredBody body = lower(part.body, {.capabilities = {}, .disabled = toggle.names});
          body.program.name = fmt::format("kernel{}", bodies_.size());
          bodies_.emplace(&part, std::move(body));
        }
  }

  const LoweredBody& operator[](const KernelPart& part) const { return bodies_.at(&part); }

  std::string problem() const {
    for (const auto& [part, body] : bodies_)
      if (const std::string text = verify(body.program); !text.empty())
        return fmt::format("{}\n{}{}", text, to_text(part->body), to_text(body.program));
    return "";
  }

  std::map<const KernelPart*, KernelFunction> compile(KernelCache& cache) const {
    std::vector<const Program*> programs;
    for (const auto& [part, body] : bodies_) programs.push_back(&body.program);
    const std::vector<KernelFunction> compiled = cache.compile_all(programs);
    std::map<const KernelPart*, KernelFunction> functions;
    size_t next = 0;
    for (const auto& [part, body] : bodies_) functions[part] = compiled[next++];
    return functions;
  }

 private:
  std::map<const KernelPart*, LoweredBody> bodies_;
};

constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

// A value's bytes between two guards.
class GuardedMemory {
 public:
  explicit GuardedMemory(const Value& value) : storage_(to_storage(value)) {
    bytes_.assign(storage_.bytes.size() + 3 * kGuardBytes, kGuard);
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    begin_ = kGuardBytes + (kGuardBytes - address % kGuardBytes) % kGuardBytes;
    std::ranges::copy(storage_.bytes, bytes_.begin() + static_cast<ptrdiff_t>(begin_));
  }

  void* data() { return bytes_.data() + begin_; }

  Value value() {
    for (size_t i = 0; i < bytes_.size(); ++i)
      if ((i < begin_ || i >= begin_ + storage_.bytes.size()) && bytes_[i] != kGuard)
        throw InternalError(fmt::format("byte {} of a buffer of {} is written",
                                        static_cast<int64_t>(i) - static_cast<int64_t>(begin_),
                                        storage_.bytes.size()));
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(begin_), storage_.bytes.size(),
                storage_.bytes.begin());
    return to_value(storage_);
  }

 private:
  Storage storage_;
  std::vector<std::byte> bytes_;
  size_t begin_ = 0;
};

void run_code(KernelFunction function, const Program& program, std::span<Value* const> values,
              const std::vector<int64_t>& sizes, int64_t cells) {
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<void*> addresses;
  for (Value* value : values) {
    memory.push_back(std::make_unique<GuardedMemory>(*value));
    addresses.push_back(memory.back()->data());
  }
  const HugeMemory local(static_cast<size_t>(local_bytes(program)) + 1);
  std::fill_n(local.data(), local.size(), kGuard);
  // In two pieces, the second first: no cell depends on another.
  const int64_t half = cells / 2;
  function(addresses.data(), sizes.data(), half, cells, local.data());
  function(addresses.data(), sizes.data(), 0, half, local.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::vector<int64_t> shape = values[i]->shape;
    *values[i] = memory[i]->value();
    values[i]->shape = shape;
  }
}

}  // namespace

std::string Toggle::text() const {
  return fmt::format("without {}{}",
                     names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")),
                     eagerness > 1 ? ", eagerly" : "");
}

const std::vector<Toggle>& schedule_toggles() {
  static const std::vector<Toggle> toggles =
      toggles_of({"inline", "in-place", "tile", "group", "split-reduce", "merge"});
  return toggles;
}

const std::vector<Toggle>& lower_toggles() {
  static const std::vector<Toggle> toggles =
      toggles_of({"merge-axes", "vectorise", "unroll", "tile", "stage"});
  return toggles;
}

GraphRuns::GraphRuns(std::span<const NodeRef> roots) : roots_(roots.begin(), roots.end()) {
  failure_ = guarded([&]() -> std::string {
    simplified_ = simplify_program(roots_);
    for (const SizeBinding& binding : size_bindings(roots_)) {
      GraphContents contents(binding);
      Expectation expected = expect(roots_, contents);
      cases_.push_back({binding, std::move(contents), std::move(expected)});
    }
    return "";
  });
}

std::string GraphRuns::check(const Schedule& schedule, const PartRunner& run_part) const {
  for (Case& each : cases_) {
    const std::string text =
        run_and_compare(roots_, schedule, each.contents, each.expected, run_part);
    if (!text.empty()) return text + bindings_text(each.binding);
  }
  return "";
}

std::string GraphRuns::check_bodies(const Toggle& toggle) const {
  if (!failure_.empty()) return failure_;
  return guarded([&]() -> std::string {
    ScheduleOptions options = options_of(toggle);
    const Schedule schedule = schedule_program(simplified_, options);
    if (std::string problem = problem_of_bodies(schedule); !problem.empty()) return problem;
    return check(schedule, [](const KernelPart& part, std::span<Value* const> values,
                              const auto& variable) { run_body(part.body, values, variable); });
  });
}

std::string GraphRuns::check_programs(const Toggle& toggle, const Toggle& lower) const {
  if (!failure_.empty()) return failure_;
  return guarded([&]() -> std::string {
    const Schedule schedule = schedule_program(simplified_, options_of(toggle));
    const LoweredSchedule lowered(schedule, lower);
    if (std::string problem = lowered.problem(); !problem.empty()) return problem;
    return check(schedule,
                 [&](const KernelPart& part, std::span<Value* const> values, const auto& variable) {
                   const LoweredBody& body = lowered[part];
                   run_program(body.program, values, sizes_of(part, variable),
                               interpret_index(body.cells, variable), true);
                 });
  });
}

std::string GraphRuns::check_code(const Toggle& toggle, const Toggle& lower) const {
  if (!failure_.empty()) return failure_;
  return guarded([&]() -> std::string {
    const Schedule schedule = schedule_program(simplified_, options_of(toggle));
    const LoweredSchedule lowered(schedule, lower);
    if (std::string problem = lowered.problem(); !problem.empty()) return problem;
    KernelCache cache({.threads = 1});
    const std::map<const KernelPart*, KernelFunction> functions = lowered.compile(cache);
    return check(schedule,
                 [&](const KernelPart& part, std::span<Value* const> values, const auto& variable) {
                   const LoweredBody& body = lowered[part];
                   run_code(functions.at(&part), body.program, values, sizes_of(part, variable),
                            interpret_index(body.cells, variable));
                 });
  });
}

}  // namespace anneal
