#include "runtime/execute/executor.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/debug.h"
#include "base/os/environment.h"
#include "base/traffic.h"
#include "runtime/execute/debug_lines.h"
#include "runtime/program/distinct_bodies.h"

namespace anneal {
namespace {

constexpr size_t kMostFreeArenas = 8;
// Runs that need less new memory than this do not ask how much there is.
constexpr int64_t kSmallRun = int64_t{64} << 20;
constexpr std::byte kPoison{0xff};

std::string bytes_text(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 10'000) return fmt::format("{:.1f} KiB", kib);
  if (kib < 10'000 * 1024.0) return fmt::format("{:.1f} MiB", kib / 1024);
  return fmt::format("{:.1f} GiB", kib / (1024.0 * 1024.0));
}

// Memory of a tensor on a device. Keeps the device, for tensors may outlive whoever made it.
class DeviceCopy : public RemoteMemory {
 public:
  DeviceCopy(std::shared_ptr<Device> device, size_t bytes)
      : device_(std::move(device)), memory_(device_->allocate(static_cast<int64_t>(bytes))) {}
  // And is still there.
  bool belongs_to(const Device& device) const {
    return device_.get() == &device && !memory_->is_lost();
  }
  BufferRef place() const { return {memory_->handle(), 0}; }
  void fetch(std::span<std::byte> to) const override {
    if (memory_->is_lost())
      fail(fmt::format("a tensor of {} was on device \"{}\", which was lost, and nowhere else",
                       bytes_text(memory_->bytes()), device_->name()),
           "load what was saved last, or set the tensor again; what the host has is copied to the "
           "device anew");
    device_->copy_out(place(), to);
  }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace

ExecutorOptions ExecutorOptions::from_environment() {
  ExecutorOptions options;
  options.poison = environment_word("ANNEAL_POISON", {"0", "1"}) == "1";
  return options;
}

// ---- one run

class Executor::Run {
 public:
  Run(Executor& executor, CompiledProgram& compiled, Launch launch)
      : executor_(executor),
        device_(*executor.device_),
        compiled_(compiled),
        slots_(std::move(launch.slots)),
        results_(std::move(launch.results)),
        written_(std::move(launch.written_later)) {
    bool fresh = false;
    sized_ = compiled.sized(launch.sizes, &fresh);
    counted_.plans = fresh;
  }

  std::vector<std::shared_ptr<Storage>> run() {
    check_slots();
    check_memory();
    allocate();
    launch();
    finish();
    return std::move(results_);
  }

  ~Run() { executor_.give_back(std::move(arena_)); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const RuntimeCounters& counted() const { return counted_; }

 private:
  bool is_assigned(size_t slot) const {
    return std::ranges::count(compiled_.assigned_slots(), static_cast<int>(slot)) > 0;
  }
  bool is_written(const Storage& storage) const {
    return std::ranges::count(written_, &storage) > 0;
  }
  int64_t bytes_of(size_t buffer) const { return sized_->memory.bytes[buffer]; }

  void check_slots() {
    const size_t later = written_.size();
    for (int slot : compiled_.assigned_slots())
      written_.push_back(slots_[static_cast<size_t>(slot)].get());
    // An input may be bound to the memory of a parameter that changes meanwhile.
    for (size_t i = 0; i < slots_.size(); ++i) {
      const bool assigned =
          std::ranges::count(std::span(written_).subspan(later), slots_[i].get()) > 0;
      if (!is_assigned(i) && assigned) slots_[i] = copy_of(*slots_[i]);
    }
    for (size_t i = 0; i < compiled_.slots().size(); ++i) {
      const int slot = compiled_.slots()[i];
      if (slot < 0) continue;
      const size_t held = slots_[static_cast<size_t>(slot)]->size();
      if (static_cast<int64_t>(held) != bytes_of(i))
        throw InternalError(fmt::format("a buffer of {} bytes holds {}", bytes_of(i), held));
    }
  }

  std::shared_ptr<Storage> copy_of(const Storage& storage) {
    counted_.copied_bytes += static_cast<int64_t>(storage.size());
    return std::make_shared<Storage>(storage);
  }

  void copy(const Storage& from, Storage& to) {
    std::ranges::copy(from.read(), to.overwrite().begin());
    counted_.copied_bytes += static_cast<int64_t>(from.size());
  }

  // ---- memory

  int64_t needed_bytes() const {
    int64_t bytes = sized_->memory.arena_bytes;
    for (size_t i = 0; i < compiled_.schedule().buffers.size(); ++i)
      if (compiled_.schedule().buffers[i].output >= 0) bytes += bytes_of(i);
    return bytes;
  }

  // Before anything is allocated, so that a program that does not fit fails with a reason.
  void check_memory() {
    const int64_t needed = needed_bytes();
    if (needed > executor_.options_.memory_limit)
      fail_memory(needed, "the limit is " + bytes_text(executor_.options_.memory_limit));
    if (needed < kSmallRun) return;
    const int64_t available = device_.available_bytes() + executor_.free_arena_bytes();
    if (needed > available) fail_memory(needed, "there are " + bytes_text(available));
  }

  // Where values are stored while the memory budget has room, less of it makes less be stored.
  std::string budget_hint() const {
    const Capabilities& capabilities = device_.capabilities();
    const bool helps = capabilities.large_elements_with_room > capabilities.large_elements;
    return helps ? "set ANNEAL_MEMORY_BUDGET to what is free, " : "";
  }

  [[noreturn]] void fail_memory(int64_t needed, const std::string& available) {
    std::vector<size_t> order;
    for (size_t i = 0; i < compiled_.schedule().buffers.size(); ++i)
      if (compiled_.slots()[i] < 0) order.push_back(i);
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return bytes_of(i); });
    std::string largest;
    for (size_t i = 0; i < std::min<size_t>(3, order.size()); ++i)
      largest +=
          fmt::format("{}{} ({})", i ? ", " : "", compiled_.describe(static_cast<int>(order[i])),
                      bytes_text(bytes_of(order[i])));
    fail(fmt::format(
             "the program needs {} for temporaries and results, {} on \"{}\"; the largest are {}",
             bytes_text(needed), available, device_.name(), largest),
         budget_hint() +
             "use smaller sizes or a narrower dtype, or evaluate parts of the program one by one");
  }

  std::shared_ptr<Storage> fresh_storage(DType dtype, const std::vector<int64_t>& shape,
                                         int64_t bytes) {
    counted_.result_bytes += bytes;
    return std::make_shared<Storage>(dtype, shape, static_cast<size_t>(bytes));
  }

  void allocate() {
    const Schedule& schedule = compiled_.schedule();
    std::vector<std::shared_ptr<Storage>> outputs(schedule.buffers.size());
    try {
      const bool given = !results_.empty();
      results_.resize(compiled_.values().size());
      for (size_t i = 0; i < results_.size(); ++i) {
        const CompiledProgram::Source& source = compiled_.values()[i];
        std::shared_ptr<Storage>& result = results_[i];
        if (source.slot >= 0) {
          // What is not written stays as it is, so its memory can be the result.
          const std::shared_ptr<Storage>& slot = slots_[static_cast<size_t>(source.slot)];
          if (given)
            copy(*slot, *result);
          else
            result = is_written(*slot) ? copy_of(*slot) : slot;
          continue;
        }
        const auto number = static_cast<size_t>(source.buffer);
        std::shared_ptr<Storage>& storage = outputs[number];
        if (storage && given) same_values_.emplace_back(storage.get(), result.get());
        if (!storage)
          storage = given ? result
                          : fresh_storage(schedule.buffers[number].dtype, sized_->shapes[i],
                                          bytes_of(number));
        if (!given) result = storage;
      }
      arena_ = executor_.take_arena(sized_->memory.arena_bytes);
    } catch (const std::bad_alloc&) {
      const int64_t needed = needed_bytes(), available = device_.available_bytes();
      fail_memory(needed, available < needed ? "there are about " + bytes_text(available)
                                             : "more than there is");  // not every device knows
    }
    for (size_t i = 0; i < schedule.buffers.size(); ++i) {
      const int slot = compiled_.slots()[i];
      if (slot >= 0)
        places_.push_back(place_of(*slots_[static_cast<size_t>(slot)], true));
      else if (outputs[i])
        places_.push_back(place_of(*outputs[i], false));
      else if (schedule.buffers[i].is_temporary() && arena_)
        places_.push_back({arena_->handle(), sized_->memory.offsets[i]});
      else
        places_.push_back({});  // in fast memory, or empty
    }
  }

  // A tensor's memory as the device knows it. Where the device has memory of its own it stays there
  // from then on, and is copied only after the host has changed it.
  BufferRef place_of(Storage& storage, bool with_contents) {
    if (device_.shares_host_memory())
      return {(with_contents ? storage.write() : storage.overwrite()).data(), 0};
    auto known = std::dynamic_pointer_cast<DeviceCopy>(storage.remote());
    const bool here = known && known->belongs_to(device_);
    if (!here) known = std::make_shared<DeviceCopy>(executor_.device_, storage.size());
    if (with_contents && !(here && storage.remote_is_current())) {
      device_.copy_in(storage.read(), known->place());
      counted_.copied_bytes += static_cast<int64_t>(storage.size());
    }
    if (with_contents || !here) storage.set_remote(known);
    return known->place();
  }

  void changed(Storage& storage) {
    if (!device_.shares_host_memory()) storage.changed_remotely();
  }

  // ---- running

  void launch() {
    const int phases = compiled_.phases();
    if (phases == 0) return;
    const RunArguments arguments{places_, sized_->sizes};
    counted_.launches = phases;
    if (!executor_.options_.poison) return run_kernels(arguments, phases);
    for (int phase = 0; phase < phases; ++phase) {
      poison([&](const Lifetime& life) { return life.first == phase; }, true);
      compiled_.executable()->run(arguments, phase, phase + 1);
      poison([&](const Lifetime& life) { return life.last == phase; }, false);
    }
  }

  // Each kernel is timed in the first two runs of a plan, where a user wants to know: the first one
  // touches memory that the second finds there.
  void run_kernels(const RunArguments& arguments, int phases) {
    constexpr int kTimedRuns = 2;
    if (!debugs(Debug::Kernels) || sized_->shown_runs >= kTimedRuns)
      return compiled_.executable()->run(arguments, 0, phases);
    ++sized_->shown_runs;
    const Schedule& schedule = compiled_.schedule();
    if (device_.has_clock()) {
      debug_kernels(schedule,
                    compiled_.executable()->run_timed(arguments, kernel_bounds(schedule)));
    } else {
      compiled_.executable()->run(arguments, 0, phases);
      debug_kernels(schedule, {});
    }
  }

  template <typename Which>
  void poison(Which which, bool outputs) {
    std::span<const Lifetime> lives = compiled_.planner().buffer_lifetimes();
    for (size_t i = 0; i < lives.size(); ++i) {
      const ScheduleBuffer& buffer = compiled_.schedule().buffers[i];
      const bool ours = buffer.is_temporary() || (outputs && buffer.output >= 0);
      if (!ours || !which(lives[i]) || bytes_of(i) == 0) continue;
      const std::vector<std::byte> pattern(static_cast<size_t>(bytes_of(i)), kPoison);
      device_.copy_in(pattern, places_[i]);
    }
  }

  void finish() {
    for (const CompiledProgram::Source& source : compiled_.values())
      if (source.slot < 0)
        changed(*results_[static_cast<size_t>(&source - compiled_.values().data())]);
    for (int slot : compiled_.assigned_slots()) changed(*slots_[static_cast<size_t>(slot)]);
    for (const auto& [from, to] : same_values_) copy(*from, *to);
  }

  Executor& executor_;
  Device& device_;
  CompiledProgram& compiled_;
  std::shared_ptr<const SizedProgram> sized_;
  std::vector<std::shared_ptr<Storage>> slots_, results_;
  std::vector<const Storage*> written_;
  std::vector<std::pair<const Storage*, Storage*>> same_values_;  // results that are another's
  std::vector<BufferRef> places_;
  std::unique_ptr<DeviceMemory> arena_;
  RuntimeCounters counted_;
};

// ---- the executor

Executor::Executor(std::unique_ptr<Device> device, const ExecutorOptions& options)
    : device_(std::move(device)), options_(options), programs_(options.most_programs) {}

std::vector<std::shared_ptr<Storage>> Executor::launch(CompiledProgram& program, Launch launch) {
  device_->recover();
  Run run(*this, program, std::move(launch));
  std::vector<std::shared_ptr<Storage>> results = run.run();
  const Lock lock(mutex_);
  ++counters_.runs;
  counters_.plans += run.counted().plans;
  counters_.launches += run.counted().launches;
  counters_.result_bytes += run.counted().result_bytes;
  counters_.copied_bytes += run.counted().copied_bytes;
  return results;
}

std::vector<std::shared_ptr<Storage>> Executor::run(const Request& request) {
  if (request.roots.empty() && request.assigns.empty()) return {};
  const CanonicalProgram program(request);
  const std::shared_ptr<CompiledProgram> ready = compiled(program, ProgramCache::Numbers::Anywhere);
  Launch work;
  for (NodeRef variable : program.variables())
    work.sizes.push_back(request.contents->size(variable));
  for (NodeRef node : program.slots())
    work.slots.push_back(node->op == Op::Buffer ? request.contents->buffer(node)
                                                : request.contents->find(node));
  for (std::shared_ptr<Storage>& slot : program.extra_slots(ready->numbers())) {
    traffic().host_to_device += static_cast<int64_t>(slot->size());
    work.slots.push_back(std::move(slot));
  }
  std::vector<Storage*> late;
  for (NodeRef assign : program.late_assigns())
    late.push_back(current_graph().stored(assign->source(0)));
  work.written_later.assign(late.begin(), late.end());
  std::vector<std::shared_ptr<Storage>> results = launch(*ready, std::move(work));
  for (size_t i = 0; i < late.size(); ++i) {
    const Storage& value = *results[request.roots.size() + i];
    std::ranges::copy(value.read(), late[i]->overwrite().begin());
    const Lock lock(mutex_);
    counters_.copied_bytes += static_cast<int64_t>(value.size());
  }
  results.resize(request.roots.size());
  return results;
}

class Executor::ReadyPlan : public Plan {
 public:
  ReadyPlan(Executor& executor, std::shared_ptr<CompiledProgram> program)
      : executor_(executor), program_(std::move(program)) {}

  void run(std::span<const std::shared_ptr<Storage>> slots, std::span<const int64_t> sizes,
           std::span<const std::shared_ptr<Storage>> results) override {
    executor_.launch(*program_, {.sizes = {sizes.begin(), sizes.end()},
                                 .slots = {slots.begin(), slots.end()},
                                 .written_later = {},
                                 .results = {results.begin(), results.end()}});
  }

 private:
  Executor& executor_;
  std::shared_ptr<CompiledProgram> program_;
};

std::unique_ptr<Plan> Executor::plan(const CanonicalProgram& program) {
  // Its numbers stay what they are.
  return std::make_unique<ReadyPlan>(*this, compiled(program, ProgramCache::Numbers::InCode));
}

RuntimeCounters Executor::counters() const {
  const Lock lock(mutex_);
  RuntimeCounters all = counters_;
  all.device = device_->counters();
  return all;
}

size_t Executor::program_count() const {
  const Lock lock(mutex_);
  return programs_.size();
}

std::shared_ptr<CompiledProgram> Executor::compiled(const CanonicalProgram& program,
                                                    ProgramCache::Numbers numbers) {
  NumberInputs inputs(program.numbers());
  {
    const Lock lock(mutex_);
    if (std::shared_ptr<CompiledProgram> known = programs_.find(program, numbers)) {
      ++counters_.hits;
      return known;
    }
    ++counters_.misses;
    if (numbers == ProgramCache::Numbers::Anywhere) inputs = programs_.inputs_for(program);
  }
  device_->recover();
  const auto start = std::chrono::steady_clock::now();
  auto fresh = std::make_shared<CompiledProgram>(program, *device_, std::move(inputs));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  debug_plan(program.exact_key(), device_->name(), fresh->schedule(), took.count());
  const auto bodies = static_cast<int64_t>(distinct_bodies(fresh->schedule()).bodies.size());
  const Lock lock(mutex_);
  counters_.kernels_compiled += static_cast<int64_t>(fresh->schedule().kernels.size());
  counters_.bodies_compiled += bodies;
  if (std::shared_ptr<CompiledProgram> other = programs_.find(program, numbers))
    return other;  // another thread's
  counters_.evicted += static_cast<int64_t>(programs_.add(program, fresh));
  return fresh;
}

std::unique_ptr<DeviceMemory> Executor::take_arena(int64_t bytes) {
  if (bytes == 0) return nullptr;
  const Lock lock(mutex_);
  drop_lost_arenas();
  // The smallest that is large enough; if none is, the largest makes room for a new one.
  auto best = free_arenas_.end();
  for (auto arena = free_arenas_.begin(); arena != free_arenas_.end(); ++arena) {
    const bool fits = (*arena)->bytes() >= bytes;
    if (best == free_arenas_.end() ||
        (fits ? (*best)->bytes() < bytes || (*arena)->bytes() < (*best)->bytes()
              : (*arena)->bytes() > (*best)->bytes()))
      best = arena;
  }
  if (best != free_arenas_.end()) {
    std::unique_ptr<DeviceMemory> arena = std::move(*best);
    free_arenas_.erase(best);
    if (arena->bytes() >= bytes) return arena;
    counters_.arena_bytes -= arena->bytes();
  }
  std::unique_ptr<DeviceMemory> arena = device_->allocate(bytes);
  ++counters_.arena_allocations;
  counters_.arena_bytes += arena->bytes();
  return arena;
}

void Executor::drop_lost_arenas() {
  std::erase_if(free_arenas_, [&](const std::unique_ptr<DeviceMemory>& arena) {
    if (arena->is_lost()) counters_.arena_bytes -= arena->bytes();
    return arena->is_lost();
  });
}

void Executor::give_back(std::unique_ptr<DeviceMemory> arena) {
  if (!arena) return;
  const Lock lock(mutex_);
  if (free_arenas_.size() < kMostFreeArenas)
    free_arenas_.push_back(std::move(arena));
  else
    counters_.arena_bytes -= arena->bytes();
}

int64_t Executor::free_arena_bytes() const {
  const Lock lock(mutex_);
  int64_t most = 0;
  for (const auto& arena : free_arenas_) most = std::max(most, arena->bytes());
  return most;
}

}  // namespace anneal
