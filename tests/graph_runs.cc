// The tables of what can be left out, and the ways to run a program.
#include "graph_runs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "body_interpreter.h"
#include "codegen/pipeline.h"
#include "kernel/lower.h"
#include "program_interpreter.h"
#include "runtime/cpu/kernel_cache.h"
#include "schedule/memory/memory_plan.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

// So that a few hundred elements are many.
constexpr double kEager = 4096;
// Of one kernel, so that a small program is divided into several.
constexpr int64_t kFewOperations = 24;

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

Capabilities with_tiles() {
  Capabilities capabilities;
  capabilities.tiles = true;
  return capabilities;
}

// All that may be left out of these stages, and parts of their passes.
std::vector<std::string> optional_passes(std::initializer_list<std::string_view> stages) {
  std::vector<std::string> names;
  for (const PassRow& row : pipeline()) {
    if (std::ranges::count(stages, row.stage) == 0) continue;
    if (!row.required) names.emplace_back(row.name);
    names.insert(names.end(), row.parts.begin(), row.parts.end());
  }
  return names;
}

ScheduleOptions options_of(const Toggle& toggle, const Capabilities& capabilities = with_tiles()) {
  ScheduleOptions options{capabilities, toggle.names, toggle.threshold_scale};
  if (toggle.most_operations > 0) options.capabilities.most_operations = toggle.most_operations;
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

// Sizes are the program's own: an axis that no loop binds would look like one.
std::string unknown_variable(const Schedule& schedule, std::span<const NodeRef> roots) {
  std::set<std::string_view> known;
  for (NodeRef node : topological_order(roots))
    if (node->op == Op::Variable) known.insert(node->arg.symbol->text());
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        for (NodeRef variable : part.body.variables)
          if (!known.contains(variable->arg.symbol->text()))
            return fmt::format("no loop binds {}\n{}", variable->arg.symbol->text(),
                               to_text(part.body));
  return "";
}

std::vector<int64_t> sizes_of(const KernelPart& part,
                              const std::function<int64_t(NodeRef)>& variable) {
  std::vector<int64_t> sizes;
  for (NodeRef node : part.body.variables) sizes.push_back(variable(node));
  return sizes;
}

// What is for values too large for fast memory is for small ones, too, where there is little.
Capabilities memory_of(const Toggle& toggle) {
  Capabilities capabilities;
  if (toggle.threshold_scale > 1) {
    capabilities.nearest_memory_bytes = 1 << 9;
    capabilities.fast_memory_bytes = capabilities.tile_memory_bytes = 1 << 10;
  }
  return capabilities;
}

// Every part of a schedule as a program.
class LoweredSchedule {
 public:
  LoweredSchedule(const Schedule& schedule, const Toggle& toggle) {
    GraphScope scope(*schedule.graph);
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) {
          LoweredBody body =
              lower(part.body, {.capabilities = memory_of(toggle), .disabled = toggle.names});
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
    const std::vector<CompiledKernel> compiled = cache.compile_all(programs);
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

// Bytes between two guards that nothing may touch.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t count) : count_(count), bytes_(count + 3 * kGuardBytes, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    begin_ = kGuardBytes + (kGuardBytes - address % kGuardBytes) % kGuardBytes;
  }

  std::byte* data() { return bytes_.data() + begin_; }
  std::span<std::byte> span() { return {data(), count_}; }
  void poison() { std::ranges::fill(span(), kGuard); }

  void check(std::string_view what) const {
    for (size_t i = 0; i < bytes_.size(); ++i)
      if ((i < begin_ || i >= begin_ + count_) && bytes_[i] != kGuard)
        throw InternalError(fmt::format("byte {} of {} of {} bytes is written",
                                        static_cast<int64_t>(i) - static_cast<int64_t>(begin_),
                                        what, count_));
  }

 private:
  size_t count_, begin_ = 0;
  std::vector<std::byte> bytes_;
};

// Runs the code of a schedule as a device would: temporaries where the memory plan says, poisoned
// before their first and after their last phase.
class CodeRun {
 public:
  CodeRun(std::span<const NodeRef> roots, const Schedule& schedule, GraphContents& contents)
      : schedule_(schedule),
        variable_(variables_by_name(roots, contents)),
        values_(initial_memory(roots, schedule, contents)),
        plan_(plan_memory(schedule, variable_)),
        lifetimes_(lifetimes(schedule)),
        arena_(static_cast<size_t>(plan_.arena_bytes)) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Storage storage = to_storage(values_[i]);
      if (static_cast<int64_t>(storage.size()) != plan_.bytes[i])
        throw InternalError(fmt::format("buffer {} is planned with {} bytes and has {}", i,
                                        plan_.bytes[i], storage.size()));
      if (is_planned(i)) {
        own_.emplace_back(nullptr);
        if (lifetimes_[i].first >= 0 &&
            (plan_.offsets[i] < 0 || plan_.offsets[i] + plan_.bytes[i] > plan_.arena_bytes))
          throw InternalError(fmt::format("buffer {} is planned outside the arena", i));
        continue;
      }
      own_.push_back(std::make_unique<GuardedBytes>(storage.size()));
      std::ranges::copy(storage.read(), own_.back()->data());
    }
  }

  void run(const LoweredSchedule& lowered,
           const std::map<const KernelPart*, KernelFunction>& functions) {
    int number = 0;
    for (const Kernel& kernel : schedule_.kernels)
      for (const KernelPhase& phase : kernel.phases) {
        poison_where([&](const Lifetime& life) { return life.first == number; });
        for (size_t i = phase.size(); i-- > 0;)
          run_part(phase[i], lowered[phase[i]], functions.at(&phase[i]));
        poison_where([&](const Lifetime& life) { return life.last == number; });
        ++number;
      }
  }

  // What buffers hold now; of temporaries nothing.
  std::vector<Value> memory() {
    arena_.check("the arena");
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!own_[i]) {
        values_[i].payload.clear();
        continue;
      }
      own_[i]->check(fmt::format("buffer {}", i));
      values_[i] = to_value({values_[i].dtype, values_[i].shape, Bytes(own_[i]->span())});
    }
    return values_;
  }

 private:
  bool is_planned(size_t i) const { return schedule_.buffers[i].is_temporary(); }
  std::byte* address(size_t i) {
    return own_[i] ? own_[i]->data() : arena_.data() + plan_.offsets[i];
  }

  template <typename Condition>
  void poison_where(Condition condition) {
    for (size_t i = 0; i < values_.size(); ++i)
      if (is_planned(i) && condition(lifetimes_[i]))
        std::fill_n(address(i), plan_.bytes[i], kGuard);
  }

  void run_part(const KernelPart& part, const LoweredBody& body, KernelFunction function) {
    std::vector<void*> addresses;
    for (int argument : part.arguments) addresses.push_back(address(static_cast<size_t>(argument)));
    const std::vector<int64_t> sizes = sizes_of(part, variable_);
    GuardedBytes local(static_cast<size_t>(local_bytes(body.program)));
    // In two pieces, the second first: no cell depends on another.
    const int64_t cells = interpret_index(body.cells, variable_), half = cells / 2;
    function(addresses.data(), sizes.data(), half, cells, local.data());
    local.check("local memory");
    local.poison();
    function(addresses.data(), sizes.data(), 0, half, local.data());
    local.check("local memory");
  }

  const Schedule& schedule_;
  std::function<int64_t(NodeRef)> variable_;
  std::vector<Value> values_;
  MemoryPlan plan_;
  std::vector<Lifetime> lifetimes_;
  GuardedBytes arena_;
  std::vector<std::unique_ptr<GuardedBytes>> own_;  // null for temporaries
};

// Runs a schedule on a device, whatever memory it has: temporaries where the memory plan says, all
// of it poisoned at first.
class DeviceRun {
 public:
  DeviceRun(std::span<const NodeRef> roots, const Schedule& schedule, GraphContents& contents,
            Device& device)
      : device_(device), values_(initial_memory(roots, schedule, contents)) {
    const MemoryPlan plan = plan_memory(schedule, variables_by_name(roots, contents));
    const std::vector<std::byte> poison(static_cast<size_t>(plan.arena_bytes), kGuard);
    arena_ = device.allocate(plan.arena_bytes);
    device.copy_in(poison, {arena_->handle(), 0});
    for (size_t i = 0; i < values_.size(); ++i) {
      own_.emplace_back(nullptr);
      const bool arena = schedule.buffers[i].is_temporary();
      if (arena || plan.bytes[i] == 0) {
        places_.push_back(arena && plan.offsets[i] >= 0
                              ? BufferRef{arena_->handle(), plan.offsets[i]}
                              : BufferRef{});
        continue;
      }
      own_.back() = device.allocate(plan.bytes[i]);
      places_.push_back({own_.back()->handle(), 0});
      device.copy_in(to_storage(values_[i]).read(), places_.back());
    }
  }

  void run(const Executable& executable, const Schedule& schedule,
           std::span<const int64_t> sizes) const {
    int phases = 0;
    for (const Kernel& kernel : schedule.kernels) phases += static_cast<int>(kernel.phases.size());
    executable.run({places_, sizes}, 0, phases);
  }

  // What buffers hold now; of temporaries nothing.
  std::vector<Value> memory() {
    for (size_t i = 0; i < values_.size(); ++i) {
      Bytes bytes(own_[i] ? static_cast<size_t>(own_[i]->bytes()) : 0);
      if (own_[i]) device_.copy_out(places_[i], {bytes.data(), bytes.size()});
      if (own_[i])
        values_[i] = to_value({values_[i].dtype, values_[i].shape, std::move(bytes)});
      else
        values_[i].payload.clear();
    }
    return values_;
  }

 private:
  Device& device_;
  std::vector<Value> values_;
  std::unique_ptr<DeviceMemory> arena_;
  std::vector<std::unique_ptr<DeviceMemory>> own_;  // null for temporaries, and what is empty
  std::vector<BufferRef> places_;
};

}  // namespace

std::string Toggle::text() const {
  return fmt::format(
      "without {}{}{}", names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")),
      threshold_scale > 1 ? ", eagerly" : "", most_operations > 0 ? ", in short kernels" : "");
}

const std::vector<Toggle>& schedule_toggles() {
  static const std::vector<Toggle> toggles = [] {
    std::vector<Toggle> all = toggles_of(optional_passes({"graph", "fusion", "fragments"}));
    for (size_t i = 0, count = all.size(); i < count; ++i)
      all.push_back({all[i].names, all[i].threshold_scale, kFewOperations});
    return all;
  }();
  return toggles;
}

const std::vector<Toggle>& lower_toggles() {
  static const std::vector<Toggle> toggles = toggles_of(optional_passes({"kernel body", "plan"}));
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
    if (std::string problem = unknown_variable(schedule, roots_); !problem.empty()) return problem;
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
    for (Case& each : cases_) {
      CodeRun run(roots_, schedule, each.contents);
      run.run(lowered, functions);
      const std::string text =
          compare_memory(roots_, schedule, each.contents, each.expected, run.memory());
      if (!text.empty()) return text + bindings_text(each.binding);
    }
    return "";
  });
}

std::string GraphRuns::check_on(Device& device, const Toggle& toggle) const {
  if (!failure_.empty()) return failure_;
  return guarded([&]() -> std::string {
    const ScheduleOptions options = options_of(toggle, device.capabilities());
    const Schedule schedule = schedule_program(simplified_, options);
    std::vector<NodeRef> variables;
    for (NodeRef node : topological_order(roots_))
      if (node->op == Op::Variable) variables.push_back(node);
    const std::unique_ptr<Executable> executable = device.compile(schedule, variables);
    for (Case& each : cases_) {
      std::vector<int64_t> sizes;
      for (NodeRef variable : variables) sizes.push_back(each.contents.size(variable));
      DeviceRun run(roots_, schedule, each.contents, device);
      run.run(*executable, schedule, sizes);
      const std::string text =
          compare_memory(roots_, schedule, each.contents, each.expected, run.memory());
      if (!text.empty()) return text + bindings_text(each.binding);
    }
    return "";
  });
}

}  // namespace anneal
