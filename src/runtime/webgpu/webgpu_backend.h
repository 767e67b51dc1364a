// An open WebGPU as a backend of GPU runtimes: kernels become pipelines of WGSL, launches become
// bind groups and dispatches.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/gpu/backend.h"
#include "runtime/webgpu/buffer_pool.h"
#include "runtime/webgpu/pipeline_cache.h"

namespace anneal::webgpu {

inline const Buffer* buffer_of(BufferRef place) { return static_cast<const Buffer*>(place.memory); }

class WebGpuBackend : public gpu::Backend {
 public:
  WebGpuBackend(std::unique_ptr<Gpu> gpu, const Capabilities& capabilities)
      : gpu_(std::move(gpu)), capabilities_(capabilities), pipelines_(*gpu_), buffers_(*gpu_) {}

  Gpu& gpu() const { return *gpu_; }
  BufferPool& buffers() { return buffers_; }

  std::vector<std::shared_ptr<const gpu::Code>> compile(
      std::span<const gpu::CodeRequest> requests) override;
  // Buffers keep their handles while anything is bound to them.
  const void* identity(BufferRef place) const override { return buffer_of(place)->handle(); }
  std::unique_ptr<gpu::Bound> bind(std::span<const gpu::Launch> launches) override;
  std::unique_ptr<gpu::Commands> encode(const gpu::Bound& bound, size_t begin, size_t end) override;
  void submit(std::unique_ptr<gpu::Commands> commands) override;
  std::vector<double> submit_timed(const gpu::Bound& bound,
                                   std::span<const size_t> bounds) override;

 private:
  Binding nothing(int n);

  std::unique_ptr<Gpu> gpu_;
  Capabilities capabilities_;
  PipelineCache pipelines_;
  BufferPool buffers_;
  std::mutex mutex_;  // of what follows
  Buffer nothing_;
};

}  // namespace anneal::webgpu
