#include "runtime/webgpu/webgpu_device.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/os/environment.h"
#include "base/progress.h"
#include "codegen/wgsl/kernel_shader.h"
#include "runtime/program/distinct_bodies.h"
#include "runtime/webgpu/buffer_pool.h"
#include "runtime/webgpu/pipeline_cache.h"
#include "symbolic/index_program.h"

namespace anneal {
namespace {

using webgpu::Gpu;

const webgpu::Buffer* buffer_of(BufferRef place) {
  return static_cast<const webgpu::Buffer*>(place.memory);
}

// A GPU and the kernels that were made for it.
struct OpenGpu {
  explicit OpenGpu(std::unique_ptr<Gpu> opened)
      : gpu(std::move(opened)), pipelines(*gpu), buffers(*gpu) {}
  std::unique_ptr<Gpu> gpu;
  webgpu::PipelineCache pipelines;
  webgpu::BufferPool buffers;
};

class GpuMemory : public DeviceMemory {
 public:
  GpuMemory(std::shared_ptr<OpenGpu> from, std::unique_ptr<webgpu::Buffer> buffer, int64_t bytes)
      : DeviceMemory(buffer.get(), bytes), from_(std::move(from)), buffer_(std::move(buffer)) {}
  ~GpuMemory() override { from_->buffers.give_back(std::move(buffer_)); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  bool is_lost() const override { return buffer_->lost(); }

 private:
  std::shared_ptr<OpenGpu> from_;
  std::unique_ptr<webgpu::Buffer> buffer_;
};

// The GPU of a device: another one after it was lost.
class CurrentGpu {
 public:
  explicit CurrentGpu(std::unique_ptr<Gpu> gpu)
      : open_(std::make_shared<OpenGpu>(std::move(gpu))) {}

  std::shared_ptr<OpenGpu> get() const {
    std::lock_guard lock(mutex_);
    return open_;
  }
  void recover() {
    std::lock_guard lock(mutex_);
    if (open_->gpu->lost()) open_ = std::make_shared<OpenGpu>(open_->gpu->open_again());
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<OpenGpu> open_;
};

class GpuExecutable : public Executable {
 public:
  GpuExecutable(std::shared_ptr<const CurrentGpu> current, const Schedule& schedule,
                std::span<const NodeRef> variables, const Capabilities& capabilities)
      : current_(std::move(current)), capabilities_(capabilities), open_(current_->get()) {
    const DistinctBodies distinct = distinct_bodies(schedule);
    GraphScope scope(*schedule.graph);
    std::vector<NodeRef> cells, elements;
    for (const KernelBody* body : distinct.bodies) {
      report_progress({"lower", static_cast<int64_t>(kernels_.size()),
                       static_cast<int64_t>(distinct.bodies.size())});
      GpuKernel made = make_gpu_kernel(*body, {.capabilities = capabilities_});
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
    std::lock_guard lock(mutex_);
    Ready& ready = prepared(arguments);
    const std::pair stretch{begin, end};
    const bool again = std::exchange(ready.last_run, stretch) == stretch;
    const std::vector<webgpu::Dispatch> dispatches = dispatches_of(ready, begin, end);
    if (dispatches.empty()) return;
    if (again && ready.next)
      gpu().submit(std::exchange(ready.next, {}));
    else
      gpu().submit(dispatches);
    // What ran twice is likely to run once more: its commands are made while the GPU is busy.
    if (again) ready.next = gpu().encode(dispatches);
  }

  std::vector<double> run_timed(const RunArguments& arguments,
                                std::span<const int> bounds) const override {
    std::lock_guard lock(mutex_);
    const Ready& ready = prepared(arguments);
    std::vector<std::vector<webgpu::Dispatch>> lists;
    for (size_t i = 0; i + 1 < bounds.size(); ++i)
      lists.push_back(dispatches_of(ready, bounds[i], bounds[i + 1]));
    return gpu().submit_timed(lists);
  }

 private:
  struct Variant {
    ArgumentMemory memory;
    std::vector<int> buffers;  // that are bound
    std::shared_ptr<const webgpu::Pipeline> pipeline;
  };
  struct Code {
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
  // What a place is to the GPU. Its buffers keep their handles while anything is bound to them.
  struct BufferRange {
    webgpu::abi::Buffer buffer = nullptr;
    int64_t offset = 0;
    friend bool operator==(const BufferRange&, const BufferRange&) = default;
  };
  // Everything that is bound for one set of places and sizes.
  struct Ready {
    std::vector<BufferRange> ranges;
    std::vector<int64_t> sizes;
    webgpu::Buffer uniforms;
    std::list<webgpu::BindGroup> groups;
    std::vector<webgpu::Dispatch> dispatches;  // by part; none where it has no cells
    std::pair<int, int> last_run{-1, -1};      // its phases
    webgpu::Commands next;                     // for another run like the last
  };

  static int number_of(NodeRef variable, std::span<const NodeRef> variables) {
    for (size_t i = 0; i < variables.size(); ++i)
      if (same_variable(variable, variables[i])) return static_cast<int>(i);
    throw InternalError(
        fmt::format("a kernel reads {}, which has no value", variable->arg.symbol->text()));
  }

  static int64_t uniform_bytes(const Program& program) {
    return 16 * (1 + (program.sizes + 1) / 2);
  }

  webgpu::KernelSource source_of(const Code& code, Variant& variant) const {
    wgsl::Shader shader = shader_of(code.kernel, capabilities_, variant.memory);
    variant.buffers = shader.buffers;
    webgpu::KernelSource source;
    source.name = code.name;
    source.wgsl = std::move(shader.text);
    for (bool only_read : shader.only_read)
      source.buffers.push_back({only_read ? webgpu::Access::Read : webgpu::Access::ReadWrite, 0});
    source.uniform_bytes = uniform_bytes(code.kernel.program);
    return source;
  }

  const Variant* find_variant(size_t kernel, const ArgumentMemory& memory) const {
    for (const Variant& known : kernels_[kernel].variants)
      if (known.memory == memory) return &known;
    return nullptr;
  }

  // What parts need for such memory of their arguments, all at once. Nearly always it is what was
  // expected. Nothing is kept of what fails.
  void compile(std::span<const ArgumentMemory* const> of_parts) const {
    struct Fresh {
      size_t kernel;
      Variant variant;
    };
    std::vector<Fresh> fresh;
    std::vector<webgpu::KernelSource> sources;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const size_t kernel = parts_[i].kernel;
      if (!of_parts[i] || find_variant(kernel, *of_parts[i])) continue;
      const bool comes = std::ranges::any_of(fresh, [&](const Fresh& each) {
        return each.kernel == kernel && each.variant.memory == *of_parts[i];
      });
      if (comes) continue;
      fresh.push_back({kernel, {*of_parts[i], {}, {}}});
      sources.push_back(source_of(kernels_[kernel], fresh.back().variant));
    }
    if (fresh.empty()) return;
    std::vector<std::shared_ptr<const webgpu::Pipeline>> pipelines =
        open_->pipelines.compile(sources);
    for (size_t i = 0; i < fresh.size(); ++i) {
      fresh[i].variant.pipeline = std::move(pipelines[i]);
      kernels_[fresh[i].kernel].variants.push_back(std::move(fresh[i].variant));
    }
  }

  void compile_all() const {
    std::vector<const ArgumentMemory*> expected;
    for (const Part& part : parts_) expected.push_back(&part.expected);
    compile(expected);
  }

  // After the GPU it was made for was lost.
  void move_to(std::shared_ptr<OpenGpu> open) const {
    ready_.clear();
    nothing_ = {};
    for (Code& kernel : kernels_) kernel.variants.clear();
    open_ = std::move(open);
    compile_all();
  }

  static std::vector<BufferRange> ranges_of(std::span<const BufferRef> places) {
    std::vector<BufferRange> ranges;
    for (const BufferRef& place : places)
      ranges.push_back({place.memory ? buffer_of(place)->handle() : nullptr, place.offset});
    return ranges;
  }

  std::vector<webgpu::Dispatch> dispatches_of(const Ready& ready, int begin, int end) const {
    std::vector<webgpu::Dispatch> dispatches;
    for (size_t i = phases_[static_cast<size_t>(begin)]; i < phases_[static_cast<size_t>(end)]; ++i)
      if (ready.dispatches[i].pipeline) dispatches.push_back(ready.dispatches[i]);
    return dispatches;
  }

  Ready& prepared(const RunArguments& arguments) const {
    constexpr size_t kMost = 8;
    if (open_ != current_->get()) move_to(current_->get());
    const std::vector<BufferRange> ranges = ranges_of(arguments.buffers);
    for (auto known = ready_.begin(); known != ready_.end(); ++known)
      if (known->ranges == ranges && std::ranges::equal(known->sizes, arguments.sizes)) {
        ready_.splice(ready_.begin(), ready_, known);
        return ready_.front();
      }
    ready_.push_front(prepare(arguments));
    if (ready_.size() > kMost) ready_.pop_back();
    return ready_.front();
  }

  Ready prepare(const RunArguments& arguments) const {
    Ready ready;
    ready.ranges = ranges_of(arguments.buffers);
    ready.sizes.assign(arguments.sizes.begin(), arguments.sizes.end());
    const std::vector<int64_t> cells = cells_.evaluate(arguments.sizes);
    const std::vector<int64_t> elements = elements_.evaluate(arguments.sizes);

    // What is empty may be planned where others are.
    std::vector<BufferRef> places(arguments.buffers.begin(), arguments.buffers.end());
    for (size_t i = 0; i < places.size(); ++i)
      if (elements[i] == 0) places[i] = {};

    // One buffer holds what all parts are given.
    const int64_t unit = std::max(16, gpu().limits().uniform_offset_alignment);
    std::vector<int64_t> offsets;
    int64_t bytes = 0;
    for (const Part& part : parts_) {
      offsets.push_back(bytes);
      bytes += (uniform_bytes(kernels_[part.kernel].kernel.program) + unit - 1) / unit * unit;
    }
    std::vector<uint32_t> words(static_cast<size_t>(bytes) / 4);
    for (size_t i = 0; i < parts_.size(); ++i) {
      uint32_t* given = words.data() + offsets[i] / 4;
      given[0] = static_cast<uint32_t>(cells[parts_[i].kernel]);
      for (size_t k = 0; k < parts_[i].sizes.size(); ++k) {
        const auto size =
            static_cast<uint64_t>(arguments.sizes[static_cast<size_t>(parts_[i].sizes[k])]);
        given[4 + 2 * k] = static_cast<uint32_t>(size);
        given[5 + 2 * k] = static_cast<uint32_t>(size >> 32);
      }
    }
    ready.uniforms = gpu().create_buffer(bytes, "sizes");
    gpu().write(ready.uniforms, 0, std::as_bytes(std::span(words)));

    std::vector<std::optional<ArgumentMemory>> memory(parts_.size());
    std::vector<const ArgumentMemory*> wanted(parts_.size(), nullptr);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (cells[parts_[i].kernel] == 0) continue;
      std::vector<ArgumentPlace> arguments_at;
      for (int number : parts_[i].arguments) {
        const BufferRef& place = places[static_cast<size_t>(number)];
        arguments_at.push_back({place.memory ? buffer_of(place)->handle() : nullptr, place.offset});
      }
      const Program& program = kernels_[parts_[i].kernel].kernel.program;
      wanted[i] = &memory[i].emplace(memory_of(program, arguments_at));
    }
    compile(wanted);

    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const Code& kernel = kernels_[part.kernel];
      const int64_t count = cells[part.kernel];
      ready.dispatches.emplace_back();
      if (count == 0) continue;
      const Variant& code = *find_variant(part.kernel, *memory[i]);
      std::vector<webgpu::Binding> bindings;
      int empty = 0;
      for (int number : code.buffers) {
        const auto buffer = static_cast<size_t>(part.arguments[static_cast<size_t>(number)]);
        const BufferRef& place = places[buffer];
        const int64_t size = std::max<int64_t>(4, elements[buffer] * element_bytes_[buffer]);
        if (place.memory)
          bindings.push_back({buffer_of(place), place.offset, (size + 15) / 16 * 16});
        else
          bindings.push_back(nothing(empty++));
      }
      bindings.push_back({&ready.uniforms, offsets[i], uniform_bytes(kernel.kernel.program)});
      ready.groups.push_back(gpu().bind(*code.pipeline, bindings));
      const int64_t columns = std::min(count, wgsl::kGroupsInRow);
      const int64_t rows = (count + columns - 1) / columns;
      ready.dispatches.back() = {code.pipeline.get(),
                                 &ready.groups.back(),
                                 {static_cast<uint32_t>(columns), static_cast<uint32_t>(rows), 1}};
    }
    return ready;
  }

  // For the n-th buffer of a kernel that has no elements: what is bound for writing must not
  // overlap.
  webgpu::Binding nothing(int n) const {
    const int64_t unit = std::max(16, gpu().limits().storage_offset_alignment);
    if (!nothing_) nothing_ = gpu().create_buffer(unit * gpu().limits().storage_buffers, "nothing");
    return {&nothing_, n * unit, 16};
  }

  Gpu& gpu() const { return *open_->gpu; }

  std::shared_ptr<const CurrentGpu> current_;
  Capabilities capabilities_;
  std::vector<Part> parts_;
  std::vector<size_t> phases_;  // where the parts of each begin
  std::vector<int64_t> element_bytes_;
  IndexProgram cells_, elements_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::shared_ptr<OpenGpu> open_;
  mutable std::vector<Code> kernels_;
  mutable std::list<Ready> ready_;  // the last used first
  mutable webgpu::Buffer nothing_;
};

// The adapter of an open GPU, with what that may use of it.
webgpu::AdapterInfo opened(const Gpu& gpu) {
  webgpu::AdapterInfo adapter = gpu.adapter();
  adapter.limits = gpu.limits();
  adapter.f16 = gpu.f16();
  adapter.subgroups = gpu.subgroups();
  adapter.matrices = gpu.matrices();
  return adapter;
}

// Matrices are asked for only by those who may use them.
webgpu::GpuOptions gpu_options(const WebGpuOptions& options) {
  webgpu::GpuOptions gpu = options.gpu;
  gpu.matrices = options.wishes.precision == MatmulPrecision::High &&
                 options.matrices == WebGpuOptions::Matrices::ByAdapter;
  return gpu;
}

class WebGpuDevice : public Device {
 public:
  explicit WebGpuDevice(const WebGpuOptions& options)
      : current_(std::make_shared<CurrentGpu>(Gpu::open(options.adapter, gpu_options(options)))),
        target_(target_of(opened(*gpu()), options)),
        capabilities_(capabilities_of(target_, options.wishes)) {}

  std::shared_ptr<Gpu> gpu() const {
    const std::shared_ptr<OpenGpu> open = current_->get();
    return {open, open->gpu.get()};
  }

  std::string_view name() const override { return "webgpu"; }
  const Target& target() const override { return target_; }
  const Capabilities& capabilities() const override { return capabilities_; }

  std::unique_ptr<Executable> compile(const Schedule& schedule,
                                      std::span<const NodeRef> variables) override {
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase)
          for (NodeRef node : topological_order(part.body.stores))
            if (node->dtype == DType::F64)
              fail("WebGPU has no f64", "cast to f32, or use device \"cpu\"");
    return std::make_unique<GpuExecutable>(current_, schedule, variables, capabilities_);
  }

  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    // Kernels take whole words of what they are bound to.
    std::shared_ptr<OpenGpu> open = current_->get();
    std::unique_ptr<webgpu::Buffer> buffer =
        open->buffers.take((std::max<int64_t>(bytes, 1) + 15) / 16 * 16);
    return std::make_unique<GpuMemory>(std::move(open), std::move(buffer), bytes);
  }
  int64_t available_bytes() const override { return int64_t{1} << 60; }  // nobody tells

  bool shares_host_memory() const override { return false; }
  bool has_clock() const override { return gpu()->timestamps(); }
  void wait() override { gpu()->wait(); }
  void recover() override { current_->recover(); }
  DeviceCounters counters() const override {
    const webgpu::GpuCounters all = gpu()->counters();
    return {all.submits, all.buffers_created, all.bytes_written, all.bytes_read};
  }
  void copy_in(std::span<const std::byte> from, BufferRef to) override {
    if (!from.empty()) gpu()->write(*buffer_of(to), to.offset, from);
  }
  void copy_out(BufferRef from, std::span<std::byte> to) override {
    if (!to.empty()) gpu()->read(*buffer_of(from), from.offset, to);
  }

 private:
  std::shared_ptr<CurrentGpu> current_;
  Target target_;
  Capabilities capabilities_;
};

std::optional<std::string>& chosen_adapter() {
  static std::optional<std::string> chosen;
  return chosen;
}

std::optional<MatmulPrecision>& chosen_precision() {
  static std::optional<MatmulPrecision> chosen;
  return chosen;
}

std::optional<int64_t>& chosen_budget() {
  static std::optional<int64_t> chosen;
  return chosen;
}

}  // namespace

void set_webgpu_adapter(std::string selector) { chosen_adapter() = std::move(selector); }
void set_matmul_precision(MatmulPrecision precision) { chosen_precision() = precision; }
void set_memory_budget(int64_t bytes) { chosen_budget() = bytes; }

WebGpuOptions WebGpuOptions::from_environment() {
  WebGpuOptions options;
  options.adapter = chosen_adapter().value_or(environment("ANNEAL_ADAPTER"));
  if (chosen_precision())
    options.wishes.precision = *chosen_precision();
  else if (environment_word("ANNEAL_MATMUL_PRECISION", {"full", "high"}) == "high")
    options.wishes.precision = MatmulPrecision::High;
  options.wishes.memory_bytes =
      chosen_budget() ? *chosen_budget() : environment_bytes("ANNEAL_MEMORY_BUDGET").value_or(0);
  options.gpu.minimum_limits =
      environment_word("ANNEAL_WEBGPU_LIMITS", {"minimum", "own"}) == "minimum";
  options.gpu.trust_shaders = true;  // they are ours, and read nothing that is not there
  if (const auto tiles = environment_word("ANNEAL_WEBGPU_TILES", {"gpu", "cpu"}))
    options.tiles = tiles == "gpu" ? Tiles::Gpu : Tiles::Cpu;
  if (environment_word("ANNEAL_WEBGPU_MATRICES", {"spelled", "none"}) == "spelled")
    options.matrices = Matrices::Spelled;
  return options;
}

Target target_of(const webgpu::AdapterInfo& adapter, const WebGpuOptions& options) {
  const webgpu::Limits& limits = adapter.limits;
  Hardware hardware;
  hardware.f16 = adapter.f16;
  if (adapter.matrices) hardware.matrix_units = {{16, 16, 16, DType::F16, DType::F32, 32}};
  hardware.workgroup_bytes = limits.workgroup_bytes;
  hardware.max_workgroup_threads = limits.workgroup_invocations;
  hardware.subgroup_min = adapter.subgroup_min;
  hardware.subgroup_max = adapter.subgroup_max;
  hardware.subgroup_operations = adapter.subgroups;
  hardware.max_buffers = limits.storage_buffers;
  hardware.max_binding_bytes = limits.storage_binding_bytes;
  hardware.max_buffer_bytes = limits.buffer_bytes;

  const WebGpuOptions::Tiles tiles = options.tiles;
  const bool software = tiles == WebGpuOptions::Tiles::ByAdapter
                            ? adapter.kind == webgpu::AdapterKind::Cpu
                            : tiles == WebGpuOptions::Tiles::Cpu;
  Target target = webgpu_target(software ? GpuKind::Software : GpuKind::Hardware, hardware);
  target.description = adapter.name;
  if (options.matrices == WebGpuOptions::Matrices::Spelled) {
    target.tuning.emulate_matrix_unit = true;
    target.tuning.least_matrix_work = 0;  // tests are small
  }
  return target;
}

std::shared_ptr<Gpu> gpu_of(const Device& device) {
  return dynamic_cast<const WebGpuDevice&>(device).gpu();
}

std::unique_ptr<Device> make_webgpu_device(const WebGpuOptions& options) {
  return std::make_unique<WebGpuDevice>(options);
}

namespace {

std::unique_ptr<Device> make_default_device() { return make_webgpu_device(); }

constexpr std::string_view kSettings[] = {"adapter", "matmul-precision", "memory-budget"};

}  // namespace

constinit const Backend kWebGpuBackend{.name = "webgpu",
                                       .make_device = make_default_device,
                                       .computes_f64 = false,
                                       .settings = kSettings};

}  // namespace anneal
