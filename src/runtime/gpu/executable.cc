#include "runtime/gpu/executable.h"

#include <algorithm>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/os/mutex.h"
#include "base/progress.h"
#include "runtime/device/tuned_plans.h"
#include "runtime/program/distinct_bodies.h"
#include "symbolic/index_program.h"

namespace anneal::gpu {
namespace {

int number_of(NodeRef variable, std::span<const NodeRef> variables) {
  for (size_t i = 0; i < variables.size(); ++i)
    if (same_variable(variable, variables[i])) return static_cast<int>(i);
  throw InternalError(
      fmt::format("a kernel reads {}, which has no value", variable->arg.symbol->text()));
}

class GpuExecutable : public Executable {
 public:
  GpuExecutable(CurrentBackend current, const Schedule& schedule,
                std::span<const NodeRef> variables, const Capabilities& capabilities,
                TunedPlans* plans)
      : current_(std::move(current)), backend_(current_()) {
    const DistinctBodies distinct = distinct_bodies(schedule);
    GraphScope scope(*schedule.graph);
    std::vector<NodeRef> cells, elements;
    for (const KernelBody* body : distinct.bodies) {
      report_progress({"lower", static_cast<int64_t>(kernels_.size()),
                       static_cast<int64_t>(distinct.bodies.size())});
      LowerOptions options{.capabilities = capabilities};
      options.plan = tuned_plan(plans, *body);
      GpuKernel made = make_gpu_kernel(*body, options);
      if (!made.refused.empty()) report_refused(made.refused);
      cells.push_back(made.cells);
      kernels_.push_back({std::move(made), fmt::format("kernel{}", kernels_.size()), {}});
    }
    for (const ScheduleBuffer& buffer : schedule.buffers) {
      element_bytes_.push_back(static_cast<int64_t>(byte_size(buffer.dtype)));
      elements.push_back(buffer.elements);
    }
    cells_ = IndexProgram(cells, variables);
    elements_ = IndexProgram(elements, variables);

    size_t next = 0;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases) {
        phases_.push_back(parts_.size());
        for (const KernelPart& part : phase) {
          Part made{static_cast<size_t>(distinct.of_part[next++]), part.arguments, {}, {}};
          for (NodeRef variable : part.body.variables)
            made.sizes.push_back(number_of(variable, variables));
          made.expected =
              expected_memory(kernels_[made.kernel].kernel.program, schedule, made.arguments);
          parts_.push_back(std::move(made));
        }
      }
    phases_.push_back(parts_.size());
    compile_all();
  }

  void run(const RunArguments& arguments, int begin, int end) const override {
    const Lock lock(mutex_);
    Ready& ready = prepared(arguments);
    const std::pair stretch{begin, end};
    const bool again = std::exchange(ready.last_run, stretch) == stretch;
    const size_t first = first_part(begin), last = first_part(end);
    const bool any = std::any_of(ready.launches.begin() + static_cast<int64_t>(first),
                                 ready.launches.begin() + static_cast<int64_t>(last),
                                 [](const Launch& launch) { return launch.code != nullptr; });
    if (!any) return;
    if (again && ready.next)
      backend_->submit(std::exchange(ready.next, nullptr));
    else
      backend_->submit(backend_->encode(*ready.bound, first, last));
    // What ran twice is likely to run once more: its commands are made while the GPU is busy.
    if (again) ready.next = backend_->encode(*ready.bound, first, last);
  }

  std::vector<double> run_timed(const RunArguments& arguments,
                                std::span<const int> bounds) const override {
    const Lock lock(mutex_);
    const Ready& ready = prepared(arguments);
    std::vector<size_t> parts;
    for (int bound : bounds) parts.push_back(first_part(bound));
    return backend_->submit_timed(*ready.bound, parts);
  }

 private:
  struct Variant {
    ArgumentMemory memory;
    std::shared_ptr<const Code> code;
  };
  struct KernelCode {
    GpuKernel kernel;
    std::string name;
    std::list<Variant> variants;
  };
  struct Part {
    size_t kernel;
    std::vector<int> arguments;
    std::vector<int> sizes;
    ArgumentMemory expected;  // of its arguments, before they are known
  };
  // What a place is to the GPU.
  struct BufferRange {
    const void* memory = nullptr;
    int64_t offset = 0;
    friend bool operator==(const BufferRange&, const BufferRange&) = default;
  };
  // Everything that is bound for one set of places and sizes.
  struct Ready {
    std::vector<BufferRange> ranges;
    std::vector<int64_t> sizes;
    std::vector<Launch> launches;  // by part
    std::unique_ptr<Bound> bound;
    std::pair<int, int> last_run{-1, -1};  // its phases
    std::unique_ptr<Commands> next;        // for another run like the last
  };

  size_t first_part(int phase) const { return phases_[static_cast<size_t>(phase)]; }

  const Variant* find_variant(size_t kernel, const ArgumentMemory& memory) const {
    for (const Variant& known : kernels_[kernel].variants)
      if (known.memory == memory) return &known;
    return nullptr;
  }

  // What parts need for such memory of their arguments, all at once. Nearly always it is what was
  // expected. Nothing is kept of what fails.
  void compile(std::span<const ArgumentMemory* const> of_parts) const {
    std::vector<CodeRequest> requests;
    std::vector<size_t> kernels;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const size_t kernel = parts_[i].kernel;
      if (!of_parts[i] || find_variant(kernel, *of_parts[i])) continue;
      const KernelCode& code = kernels_[kernel];
      const bool comes = std::ranges::any_of(requests, [&](const CodeRequest& each) {
        return each.kernel == &code.kernel && *each.memory == *of_parts[i];
      });
      if (comes) continue;
      requests.push_back({&code.kernel, code.name, of_parts[i]});
      kernels.push_back(kernel);
    }
    if (requests.empty()) return;
    const std::vector<std::shared_ptr<const Code>> made = backend_->compile(requests);
    for (size_t i = 0; i < made.size(); ++i)
      kernels_[kernels[i]].variants.push_back({*requests[i].memory, made[i]});
  }

  void compile_all() const {
    std::vector<const ArgumentMemory*> expected;
    for (const Part& part : parts_) expected.push_back(&part.expected);
    compile(expected);
  }

  // After the GPU it was made for was lost.
  void move_to(std::shared_ptr<Backend> backend) const {
    ready_.clear();
    for (KernelCode& kernel : kernels_) kernel.variants.clear();
    backend_ = std::move(backend);
    compile_all();
  }

  BufferRange range_of(BufferRef place) const {
    return {place.memory ? backend_->identity(place) : nullptr, place.offset};
  }

  Ready& prepared(const RunArguments& arguments) const {
    constexpr size_t kMost = 8;
    if (std::shared_ptr<Backend> now = current_(); now != backend_) move_to(std::move(now));
    std::vector<BufferRange> ranges;
    for (const BufferRef& place : arguments.buffers) ranges.push_back(range_of(place));
    for (auto known = ready_.begin(); known != ready_.end(); ++known)
      if (known->ranges == ranges && std::ranges::equal(known->sizes, arguments.sizes)) {
        ready_.splice(ready_.begin(), ready_, known);
        return ready_.front();
      }
    Ready ready = prepare(arguments);
    ready.ranges = std::move(ranges);
    ready_.push_front(std::move(ready));
    if (ready_.size() > kMost) ready_.pop_back();
    return ready_.front();
  }

  Ready prepare(const RunArguments& arguments) const {
    Ready ready;
    ready.sizes.assign(arguments.sizes.begin(), arguments.sizes.end());
    const std::vector<int64_t> cells = cells_.evaluate(arguments.sizes);
    const std::vector<int64_t> elements = elements_.evaluate(arguments.sizes);

    // What is empty may be planned where others are.
    std::vector<BufferRef> places(arguments.buffers.begin(), arguments.buffers.end());
    for (size_t i = 0; i < places.size(); ++i)
      if (elements[i] == 0) places[i] = {};

    std::vector<std::optional<ArgumentMemory>> memory(parts_.size());
    std::vector<const ArgumentMemory*> wanted(parts_.size(), nullptr);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (cells[parts_[i].kernel] == 0) continue;
      std::vector<ArgumentPlace> arguments_at;
      for (int number : parts_[i].arguments) {
        const BufferRange range = range_of(places[static_cast<size_t>(number)]);
        arguments_at.push_back({range.memory, range.offset});
      }
      const Program& program = kernels_[parts_[i].kernel].kernel.program;
      wanted[i] = &memory[i].emplace(memory_of(program, arguments_at));
    }
    compile(wanted);

    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      Launch& launch = ready.launches.emplace_back();
      for (int size : part.sizes)
        launch.sizes.push_back(arguments.sizes[static_cast<size_t>(size)]);
      launch.cells = cells[part.kernel];
      if (launch.cells == 0) continue;
      launch.code = find_variant(part.kernel, *memory[i])->code.get();
      for (int number : launch.code->buffers()) {
        const auto buffer = static_cast<size_t>(part.arguments[static_cast<size_t>(number)]);
        launch.arguments.push_back({places[buffer], elements[buffer] * element_bytes_[buffer]});
      }
    }
    ready.bound = backend_->bind(ready.launches);
    return ready;
  }

  CurrentBackend current_;
  std::vector<Part> parts_;
  std::vector<size_t> phases_;  // where the parts of each begin
  std::vector<int64_t> element_bytes_;
  IndexProgram cells_, elements_;
  mutable Mutex mutex_;  // of what follows
  mutable std::shared_ptr<Backend> backend_;
  mutable std::vector<KernelCode> kernels_;
  mutable std::list<Ready> ready_;  // the last used first
};

}  // namespace

std::unique_ptr<Executable> make_executable(CurrentBackend current, const Schedule& schedule,
                                            std::span<const NodeRef> variables,
                                            const Capabilities& capabilities, TunedPlans* plans) {
  return std::make_unique<GpuExecutable>(std::move(current), schedule, variables, capabilities,
                                         plans);
}

}  // namespace anneal::gpu
