#include "runtime/webgpu/webgpu_device.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/os/environment.h"
#include "base/os/files.h"
#include "runtime/disk/plan_records.h"
#include "runtime/gpu/bench.h"
#include "runtime/webgpu/webgpu_backend.h"

namespace anneal {
namespace {

using webgpu::buffer_of;
using webgpu::Gpu;
using webgpu::WebGpuBackend;

class GpuMemory : public DeviceMemory {
 public:
  GpuMemory(std::shared_ptr<WebGpuBackend> from, std::unique_ptr<webgpu::Buffer> buffer,
            int64_t bytes)
      : DeviceMemory(buffer.get(), bytes), from_(std::move(from)), buffer_(std::move(buffer)) {}
  ~GpuMemory() override { from_->buffers().give_back(std::move(buffer_)); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  bool is_lost() const override { return buffer_->lost(); }

 private:
  std::shared_ptr<WebGpuBackend> from_;
  std::unique_ptr<webgpu::Buffer> buffer_;
};

// The GPU of a device: another one after it was lost.
class CurrentGpu {
 public:
  CurrentGpu(std::unique_ptr<Gpu> gpu, const Capabilities& capabilities)
      : capabilities_(capabilities),
        open_(std::make_shared<WebGpuBackend>(std::move(gpu), capabilities)) {}

  std::shared_ptr<WebGpuBackend> get() const {
    std::lock_guard lock(mutex_);
    return open_;
  }
  void recover() {
    std::lock_guard lock(mutex_);
    if (open_->gpu().lost())
      open_ = std::make_shared<WebGpuBackend>(open_->gpu().open_again(), capabilities_);
  }

 private:
  Capabilities capabilities_;
  mutable std::mutex mutex_;
  std::shared_ptr<WebGpuBackend> open_;
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

// What makes and runs the code of a plan, besides the target: what was measured with another driver
// or library says nothing.
std::string makers_of(const Gpu& gpu, const WebGpuOptions& options,
                      const Capabilities& capabilities) {
  const webgpu::AdapterInfo& adapter = gpu.adapter();
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{} {}\n{} {}", adapter.name, adapter.vendor,
                     adapter.architecture, adapter.driver, adapter.backend, adapter.vendor_id,
                     adapter.device_id, options.gpu.trust_shaders,
                     capabilities.matrix_element_bytes);
}

class WebGpuDevice : public Device {
 public:
  explicit WebGpuDevice(const WebGpuOptions& options)
      : WebGpuDevice(options, Gpu::open(options.adapter, gpu_options(options))) {}

  std::shared_ptr<Gpu> gpu() const {
    const std::shared_ptr<WebGpuBackend> open = current_->get();
    return {open, &open->gpu()};
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
    run_plan_search(schedule, *this);
    return gpu::make_executable(backend(), schedule, variables, capabilities_, &plans_);
  }

  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    // Kernels take whole words of what they are bound to.
    std::shared_ptr<WebGpuBackend> open = current_->get();
    std::unique_ptr<webgpu::Buffer> buffer =
        open->buffers().take((std::max<int64_t>(bytes, 1) + 15) / 16 * 16);
    return std::make_unique<GpuMemory>(std::move(open), std::move(buffer), bytes);
  }
  int64_t available_bytes() const override { return int64_t{1} << 60; }  // nobody tells

  bool shares_host_memory() const override { return false; }
  bool has_clock() const override { return gpu()->timestamps(); }
  TunedPlans* tuned_plans() override { return &plans_; }
  std::unique_ptr<KernelBench> kernel_bench() override { return gpu::make_bench(backend(), *this); }
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
  WebGpuDevice(const WebGpuOptions& options, std::unique_ptr<Gpu> gpu)
      : target_(target_of(opened(*gpu), options)),
        capabilities_(capabilities_of(target_, options.wishes)),
        plans_(default_cache_directory(), target_, makers_of(*gpu, options, capabilities_)),
        current_(std::make_shared<CurrentGpu>(std::move(gpu), capabilities_)) {}

  gpu::CurrentBackend backend() const {
    return [current = current_] { return current->get(); };
  }

  Target target_;
  Capabilities capabilities_;
  PlanRecords plans_;
  std::shared_ptr<CurrentGpu> current_;
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
  if (environment_word("ANNEAL_WEBGPU_MATRICES", {"emulated", "none"}) == "emulated")
    options.matrices = Matrices::Emulated;
  return options;
}

Target target_of(const webgpu::AdapterInfo& adapter, const WebGpuOptions& options) {
  const webgpu::Limits& limits = adapter.limits;
  Hardware hardware;
  hardware.f16 = adapter.f16;
  if (adapter.matrices) hardware.matrix_units = {kMatrixUnit};
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
  if (options.matrices == WebGpuOptions::Matrices::Emulated) {
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
