#include "runtime/gpu/bench.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <anneal/error.h>

#include "symbolic/bounds.h"
#include "symbolic/index_program.h"

namespace anneal::gpu {
namespace {

// Dispatches of a measurement: what a kernel of a microsecond needs beside the clock's own noise.
constexpr int kMostTimes = 16;
constexpr int kCompiledAtOnce = 8;

struct GpuBenchKernel : BenchKernel {
  GpuKernel kernel;
  std::shared_ptr<const Code> code;
  std::vector<int64_t> bytes;  // of the body's buffers
  int64_t cells = 0;
  // What it was last bound to, kMostTimes launches.
  mutable std::vector<BufferRef> places;
  mutable std::unique_ptr<Bound> bound;
};

bool same(const BufferRef& a, const BufferRef& b) {
  return a.memory == b.memory && a.offset == b.offset;
}

class GpuBench : public KernelBench {
 public:
  GpuBench(CurrentBackend current, Device& device)
      : current_(std::move(current)), backend_(current_()), device_(device) {}

  int compiled_at_once() const override { return kCompiledAtOnce; }
  int most_times() const override { return kMostTimes; }

  std::vector<std::shared_ptr<const BenchKernel>> compile(
      const KernelBody& body, std::span<const LoweredBody> lowered) override {
    std::vector<std::shared_ptr<GpuBenchKernel>> made;
    for (const LoweredBody& each : lowered) {
      auto kernel = std::make_shared<GpuBenchKernel>();
      kernel->kernel = {each.program, each.cells, most_elements(body)};
      kernel->cells = IndexProgram(std::span(&each.cells, 1), {}).evaluate({})[0];
      for (NodeRef buffer : body.buffers)
        kernel->bytes.push_back(bounds(buffer->dim(0)).max *
                                static_cast<int64_t>(byte_size(buffer->dtype)));
      made.push_back(std::move(kernel));
    }
    try {
      compile(made);
    } catch (const UserError&) {  // the others do
      for (std::shared_ptr<GpuBenchKernel>& each : made) {
        try {
          compile({&each, 1});
        } catch (const UserError&) {
          each = nullptr;
        }
      }
    }
    return {made.begin(), made.end()};
  }

  double run(const BenchKernel& kernel, std::span<const BufferRef> places, int times) override {
    const auto& own = static_cast<const GpuBenchKernel&>(kernel);
    if (own.cells == 0) return 0;
    if (!own.bound || !std::ranges::equal(own.places, places, same)) bind(own, places);
    const auto count = static_cast<size_t>(times);
    if (device_.has_clock()) {
      const size_t ends[] = {0, count};
      return backend_->submit_timed(*own.bound, ends)[0] / times;
    }
    using Clock = std::chrono::steady_clock;
    device_.wait();
    const Clock::time_point begin = Clock::now();
    backend_->submit(backend_->encode(*own.bound, 0, count));
    device_.wait();
    return std::chrono::duration<double>(Clock::now() - begin).count() / times;
  }

 private:
  // Every buffer is memory of its own.
  static ArgumentMemory memory_for(const GpuBenchKernel& kernel) {
    std::vector<ArgumentPlace> places;
    for (const int64_t& bytes : kernel.bytes)
      places.push_back({bytes > 0 ? static_cast<const void*>(&bytes) : nullptr, 0});
    return memory_of(kernel.kernel.program, places);
  }

  void compile(std::span<const std::shared_ptr<GpuBenchKernel>> kernels) {
    std::vector<ArgumentMemory> memory;
    for (const auto& each : kernels) memory.push_back(memory_for(*each));
    std::vector<CodeRequest> requests;
    for (size_t i = 0; i < kernels.size(); ++i)
      requests.push_back({&kernels[i]->kernel, "candidate", &memory[i]});
    std::vector<std::shared_ptr<const Code>> codes = backend_->compile(requests);
    for (size_t i = 0; i < kernels.size(); ++i) kernels[i]->code = std::move(codes[i]);
  }

  void bind(const GpuBenchKernel& kernel, std::span<const BufferRef> places) {
    Launch launch;
    launch.code = kernel.code.get();
    launch.cells = kernel.cells;
    for (const int number : kernel.code->buffers()) {
      const auto at = static_cast<size_t>(number);
      const int64_t bytes = kernel.bytes[at];
      launch.arguments.push_back({bytes > 0 ? places[at] : BufferRef{}, bytes});
    }
    const std::vector<Launch> launches(kMostTimes, launch);
    kernel.bound = backend_->bind(launches);
    kernel.places.assign(places.begin(), places.end());
  }

  CurrentBackend current_;
  std::shared_ptr<Backend> backend_;
  Device& device_;
};

}  // namespace

std::unique_ptr<KernelBench> make_bench(CurrentBackend current, Device& device) {
  return std::make_unique<GpuBench>(std::move(current), device);
}

}  // namespace anneal::gpu
