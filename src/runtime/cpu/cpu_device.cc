#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/os/huge_memory.h"
#include "base/os/machine.h"
#include "base/progress.h"
#include "codegen/llvm/compile.h"
#include "codegen/llvm/forms.h"
#include "kernel/lower.h"
#include "runtime/cpu/cpu_bench.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/disk/plan_records.h"
#include "runtime/program/distinct_bodies.h"
#include "symbolic/index_program.h"

namespace anneal {
namespace {

// What programs share while they run: one at a time has the threads.
struct Workers {
  std::mutex mutex;
  ThreadPool& pool = thread_pool();
  WorkerScratch scratch;
};

Workers& workers() {
  static auto& workers = *new Workers;  // lives as long as the process
  return workers;
}

class CpuMemory : public DeviceMemory {
 public:
  explicit CpuMemory(HugeMemory memory, int64_t bytes)
      : DeviceMemory(memory.data(), bytes), memory_(std::move(memory)) {}

 private:
  HugeMemory memory_;
};

std::byte* address(BufferRef place) { return static_cast<std::byte*>(place.memory) + place.offset; }

// What all devices of this process share, and code of the same LLVM.
PlanRecords& plan_records() {
  static PlanRecords records(default_cache_directory(), host_cpu_target(), codegen_identity());
  return records;
}

// With the plan that a search found, where there is one.
LoweredBody lower_as_recorded(const KernelBody& body, const Capabilities& capabilities) {
  LowerOptions options{.capabilities = capabilities};
  options.plan = tuned_plan(&plan_records(), body);
  LoweredBody lowered = lower(body, options);
  if (!lowered.refused.empty()) report_refused(lowered.refused);
  return lowered;
}

class CpuExecutable : public Executable {
 public:
  CpuExecutable(const Schedule& schedule, std::span<const NodeRef> variables,
                const Capabilities& capabilities) {
    const ShiftedBodies distinct = shifted_bodies(schedule);
    GraphScope scope(*schedule.graph);
    std::vector<Program> programs;
    std::vector<NodeRef> cells;
    const auto count = static_cast<int64_t>(distinct.bodies.size());
    for (const KernelBody* body : distinct.bodies) {
      report_progress({"lower", static_cast<int64_t>(programs.size()), count});
      LoweredBody lowered = lower_as_recorded(*body, capabilities);
      programs.push_back(std::move(lowered.program));
      cells.push_back(lowered.cells);
    }
    std::vector<const Program*> pointers;
    for (const Program& program : programs) pointers.push_back(&program);
    kernels_ = kernel_cache().compile_all(pointers);
    cells_ = IndexProgram(cells, variables);

    size_t next = 0;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases) {
        phases_.push_back(parts_.size());
        for (const KernelPart& part : phase) {
          const auto body = static_cast<size_t>(distinct.of_part[next]);
          add_offsets(part, distinct.offsets[next++]);
          parts_.push_back({kernels_[body], body, arguments_.size(), sizes_.size()});
          arguments_.insert(arguments_.end(), part.arguments.begin(), part.arguments.end());
          for (NodeRef variable : part.body.variables)
            sizes_.push_back(number_of(variable, variables));
          local_bytes_ = std::max(local_bytes_, local_bytes(programs[body]));
        }
      }
    phases_.push_back(parts_.size());
    if (cells_.is_static()) static_cells_ = cells_.evaluate({});
  }

  void run(const RunArguments& arguments, int begin, int end) const override {
    const std::vector<int64_t> own_cells =
        cells_.is_static() ? std::vector<int64_t>() : cells_.evaluate(arguments.sizes);
    const std::vector<int64_t>& cells = cells_.is_static() ? static_cells_ : own_cells;
    std::vector<void*> buffers;
    std::vector<int64_t> sizes;
    buffers.reserve(arguments_.size());
    for (size_t i = 0; i < arguments_.size(); ++i)
      buffers.push_back(address(arguments.buffers[static_cast<size_t>(arguments_[i])]) +
                        offsets_[i]);
    for (int number : sizes_) sizes.push_back(arguments.sizes[static_cast<size_t>(number)]);

    Workers& all = workers();
    std::lock_guard lock(all.mutex);
    all.scratch.reserve(all.pool.threads(), std::max(local_bytes_, kLocalAlignment));
    for (int phase = begin; phase < end; ++phase) run_phase(phase, cells, buffers, sizes, all);
  }

 private:
  struct Part {
    KernelFunction function;
    size_t body;              // among the cells
    size_t arguments, sizes;  // where its own begin
  };

  // In bytes, for each of the arguments of a part.
  void add_offsets(const KernelPart& part, const std::vector<int64_t>& elements) {
    offsets_.resize(arguments_.size() + part.arguments.size(), 0);
    for (size_t i = 0; i < elements.size(); ++i)
      offsets_[arguments_.size() + i] =
          elements[i] * static_cast<int64_t>(byte_size(part.body.buffers[i]->dtype));
  }

  static int number_of(NodeRef variable, std::span<const NodeRef> variables) {
    for (size_t i = 0; i < variables.size(); ++i)
      if (same_variable(variable, variables[i])) return static_cast<int>(i);
    throw InternalError(
        fmt::format("a kernel reads {}, which has no value", variable->arg.symbol->text()));
  }

  // The cells of all parts are one row of cells, so that small parts run beside large ones.
  void run_phase(int phase, const std::vector<int64_t>& cells, const std::vector<void*>& buffers,
                 const std::vector<int64_t>& sizes, Workers& all) const {
    const size_t first = phases_[static_cast<size_t>(phase)];
    const size_t last = phases_[static_cast<size_t>(phase) + 1];
    int64_t total = 0;
    for (size_t i = first; i < last; ++i) total += cells[parts_[i].body];
    auto call = [&](const Part& part, int64_t begin, int64_t end, int worker) {
      part.function(buffers.data() + part.arguments, sizes.data() + part.sizes, begin, end,
                    all.scratch.of(worker));
    };
    auto stretch = [&](int64_t begin, int64_t end, int worker) {
      int64_t start = 0;
      for (size_t i = first; i < last && start < end; ++i) {
        const int64_t count = cells[parts_[i].body];
        const int64_t from = std::max(begin, start), to = std::min(end, start + count);
        if (from < to) call(parts_[i], from - start, to - start, worker);
        start += count;
      }
    };
    if (total == 1) return stretch(0, 1, 0);
    all.pool.run(total, stretch);
  }

  std::vector<CompiledKernel> kernels_;  // by body
  std::vector<Part> parts_;
  std::vector<size_t> phases_;  // where the parts of each begin
  std::vector<int> arguments_, sizes_;
  std::vector<int64_t> offsets_;  // in bytes, of each argument
  IndexProgram cells_;            // by body
  std::vector<int64_t> static_cells_;
  int64_t local_bytes_ = 0;
};

class CpuDevice : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  const Target& target() const override { return target_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Executable> compile(const Schedule& schedule,
                                      std::span<const NodeRef> variables) override {
    run_plan_search(schedule, *this);
    return std::make_unique<CpuExecutable>(schedule, variables, capabilities_);
  }

  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    return std::make_unique<CpuMemory>(HugeMemory(static_cast<size_t>(bytes)), bytes);
  }
  int64_t available_bytes() const override {
    const int64_t free = available_memory_bytes();
    const auto kept = static_cast<int64_t>(kept_memory_bytes());
    return free > INT64_MAX - kept ? free : free + kept;
  }

  bool shares_host_memory() const override { return true; }
  TunedPlans* tuned_plans() override { return &plan_records(); }
  std::unique_ptr<KernelBench> kernel_bench() override { return make_cpu_bench(); }
  void copy_in(std::span<const std::byte> from, BufferRef to) override {
    if (!from.empty()) std::memcpy(address(to), from.data(), from.size());
  }
  void copy_out(BufferRef from, std::span<std::byte> to) override {
    if (!to.empty()) std::memcpy(to.data(), address(from), to.size());
  }

 private:
  Target target_ = host_cpu_target();
  Capabilities capabilities_ = capabilities_of(target_);
};

}  // namespace

Target host_cpu_target() {
  const CpuTarget code = host_target();
  Target target = cpu_target(code.vector_bytes, describe_machine());
  target.triple = code.triple;
  target.cpu = code.cpu;
  target.features = code.features;
  return target;
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

namespace {

void set_pool_threads(int count) {
  if (count > kMaxThreads)
    fail(fmt::format("{} threads are too many", count), fmt::format("use {} or less", kMaxThreads));
  std::lock_guard lock(workers().mutex);
  workers().pool.set_threads(count);
}

int pool_threads() { return workers().pool.threads(); }

constexpr BackendThreads kThreads{set_pool_threads, pool_threads};

}  // namespace

constinit const Backend kCpuBackend{
    .name = "cpu", .make_device = make_cpu_device, .forms = kLlvmForms, .threads = &kThreads};

}  // namespace anneal
