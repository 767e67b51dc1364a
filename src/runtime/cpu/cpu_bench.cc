#include "runtime/cpu/cpu_bench.h"

#include <algorithm>
#include <chrono>

#include "runtime/cpu/kernel_cache.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/thread_pool.h"
#include "symbolic/index_program.h"

namespace anneal {
namespace {

struct CpuKernel : BenchKernel {
  CompiledKernel code;
  int64_t cells = 0, local_bytes = 0;
};

class CpuBench : public KernelBench {
 public:
  ShiftedBodies bodies_of(const Schedule& schedule) const override {
    return shifted_bodies(schedule);
  }
  int compiled_at_once() const override { return default_threads(); }

  std::vector<std::shared_ptr<const BenchKernel>> compile(
      const KernelBody&, std::span<const LoweredBody> lowered) override {
    std::vector<const Program*> programs;
    for (const LoweredBody& each : lowered) programs.push_back(&each.program);
    std::vector<std::shared_ptr<const BenchKernel>> kernels;
    for (CompiledKernel& code : cache_.compile_all(programs)) {
      const LoweredBody& body = lowered[kernels.size()];
      auto kernel = std::make_shared<CpuKernel>();
      kernel->code = std::move(code);
      kernel->cells = IndexProgram(std::span(&body.cells, 1), {}).evaluate({})[0];
      kernel->local_bytes = local_bytes(body.program);
      kernels.push_back(std::move(kernel));
    }
    return kernels;
  }

  double run(const BenchKernel& kernel, std::span<const BufferRef> places, int times) override {
    using Clock = std::chrono::steady_clock;
    const auto& own = static_cast<const CpuKernel&>(kernel);
    scratch_.reserve(thread_pool().threads(), std::max(own.local_bytes, kLocalAlignment));
    std::vector<void*> pointers;
    for (const BufferRef& place : places)
      pointers.push_back(static_cast<std::byte*>(place.memory) + place.offset);
    auto stretch = [&](int64_t begin, int64_t end, int worker) {
      own.code.function(pointers.data(), nullptr, begin, end, scratch_.of(worker));
    };
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < times; ++i)
      if (own.cells == 1)
        stretch(0, 1, 0);
      else
        thread_pool().run(own.cells, stretch);
    return std::chrono::duration<double>(Clock::now() - begin).count() / times;
  }

 private:
  WorkerScratch scratch_;
  KernelCache cache_;
};

}  // namespace

std::unique_ptr<KernelBench> make_cpu_bench() { return std::make_unique<CpuBench>(); }

}  // namespace anneal
