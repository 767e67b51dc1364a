// A GPU that is none: programs, after all passes for GPUs, run on the program interpreter, which
// finds races. Counts what the runtime asks of it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "runtime/device/device.h"
#include "runtime/gpu/backend.h"

namespace anneal {

class InterpretedGpu : public Device {
 public:
  // As its counters; all of them since it began.
  struct Counts {
    int compiled = 0, bound = 0, encoded = 0, submitted = 0;
  };

  explicit InterpretedGpu(const Capabilities& capabilities);

  std::string_view name() const override { return "interpreted-gpu"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Executable> compile(const Schedule& schedule,
                                      std::span<const NodeRef> variables) override;
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override;
  int64_t available_bytes() const override { return int64_t{1} << 30; }
  bool shares_host_memory() const override { return false; }
  bool has_clock() const override { return false; }
  std::unique_ptr<KernelBench> kernel_bench() override;
  void copy_in(std::span<const std::byte> from, BufferRef to) override;
  void copy_out(BufferRef from, std::span<std::byte> to) override;

  Counts counts() const { return *counts_; }
  // Goes on with another backend, as after a loss; memory stays.
  void replace_backend();

 private:
  Capabilities capabilities_;
  std::shared_ptr<Counts> counts_;
  std::shared_ptr<std::shared_ptr<gpu::Backend>> current_;
};

}  // namespace anneal
