#include "interpreted_gpu.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/call_site.h"
#include "ir/interpreter.h"
#include "program_interpreter.h"
#include "runtime/gpu/bench.h"

namespace anneal {
namespace {

struct InterpretedCode : gpu::Code {
  explicit InterpretedCode(Program made, std::vector<int> buffers)
      : Code(std::move(buffers)), program(std::move(made)) {}
  Program program;
};

struct InterpretedBound : gpu::Bound {
  std::vector<gpu::Launch> launches;
};

struct InterpretedCommands : gpu::Commands {
  std::vector<gpu::Launch> launches;
};

std::byte* address_of(BufferRef place) {
  return static_cast<std::byte*>(place.memory) + place.offset;
}

// What arguments hold before goes in, and what was written comes out.
void run(const gpu::Launch& launch) {
  const Program& program = static_cast<const InterpretedCode&>(*launch.code).program;
  std::vector<Value> values;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const gpu::Argument& argument = launch.arguments[i];
    const DType dtype = program.buffers[i].dtype;
    const auto bytes = static_cast<size_t>(argument.place.memory ? argument.bytes : 0);
    Bytes contents(bytes);
    if (bytes > 0) std::memcpy(contents.data(), address_of(argument.place), bytes);
    const auto elements = static_cast<int64_t>(bytes / byte_size(dtype));
    values.push_back(to_value({dtype, {elements}, std::move(contents)}));
  }
  std::vector<Value*> pointers;
  for (Value& value : values) pointers.push_back(&value);
  run_program(program, pointers, launch.sizes, launch.cells);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!program.buffers[i].written || !launch.arguments[i].place.memory) continue;
    const Storage storage = to_storage(values[i]);
    if (storage.size() > 0)
      std::memcpy(address_of(launch.arguments[i].place), storage.read().data(), storage.size());
  }
}

class InterpretedBackend : public gpu::Backend {
 public:
  InterpretedBackend(const Capabilities& capabilities,
                     std::shared_ptr<InterpretedGpu::Counts> counts)
      : capabilities_(capabilities), counts_(std::move(counts)) {}

  std::vector<std::shared_ptr<const gpu::Code>> compile(
      std::span<const gpu::CodeRequest> requests) override {
    std::vector<std::shared_ptr<const gpu::Code>> made;
    for (const gpu::CodeRequest& request : requests) {
      ++counts_->compiled;
      Program program = gpu_program(*request.kernel, capabilities_, *request.memory);
      std::vector<int> buffers;
      for (size_t i = 0; i < program.buffers.size(); ++i) buffers.push_back(static_cast<int>(i));
      made.push_back(std::make_shared<InterpretedCode>(std::move(program), std::move(buffers)));
    }
    return made;
  }
  const void* identity(BufferRef place) const override { return place.memory; }

  std::unique_ptr<gpu::Bound> bind(std::span<const gpu::Launch> launches) override {
    ++counts_->bound;
    auto bound = std::make_unique<InterpretedBound>();
    bound->launches.assign(launches.begin(), launches.end());
    return bound;
  }
  std::unique_ptr<gpu::Commands> encode(const gpu::Bound& bound, size_t begin,
                                        size_t end) override {
    ++counts_->encoded;
    auto commands = std::make_unique<InterpretedCommands>();
    const auto& launches = static_cast<const InterpretedBound&>(bound).launches;
    for (size_t i = begin; i < end; ++i)
      if (launches[i].code) commands->launches.push_back(launches[i]);
    return commands;
  }
  void submit(std::unique_ptr<gpu::Commands> commands) override {
    ++counts_->submitted;
    for (const gpu::Launch& launch : static_cast<const InterpretedCommands&>(*commands).launches)
      run(launch);
  }
  std::vector<double> submit_timed(const gpu::Bound&, std::span<const size_t>) override {
    fail("an interpreted GPU has no clock", "use another device");
  }

 private:
  Capabilities capabilities_;
  std::shared_ptr<InterpretedGpu::Counts> counts_;
};

class HostMemory : public DeviceMemory {
 public:
  explicit HostMemory(std::unique_ptr<std::byte[]> memory, int64_t bytes)
      : DeviceMemory(memory.get(), bytes), memory_(std::move(memory)) {}

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

InterpretedGpu::InterpretedGpu(const Capabilities& capabilities)
    : capabilities_(capabilities),
      counts_(std::make_shared<Counts>()),
      current_(std::make_shared<std::shared_ptr<gpu::Backend>>()) {
  replace_backend();
}

void InterpretedGpu::replace_backend() {
  *current_ = std::make_shared<InterpretedBackend>(capabilities_, counts_);
}

std::unique_ptr<Executable> InterpretedGpu::compile(const Schedule& schedule,
                                                    std::span<const NodeRef> variables) {
  return gpu::make_executable([current = current_] { return *current; }, schedule, variables,
                              capabilities_);
}

std::unique_ptr<KernelBench> InterpretedGpu::kernel_bench() {
  return gpu::make_bench([current = current_] { return *current; }, *this);
}

std::unique_ptr<DeviceMemory> InterpretedGpu::allocate(int64_t bytes) {
  return std::make_unique<HostMemory>(
      std::make_unique<std::byte[]>(static_cast<size_t>(std::max<int64_t>(bytes, 1))), bytes);
}

void InterpretedGpu::copy_in(std::span<const std::byte> from, BufferRef to) {
  std::ranges::copy(from, address_of(to));
}

void InterpretedGpu::copy_out(BufferRef from, std::span<std::byte> to) {
  std::copy_n(address_of(from), to.size(), to.begin());
}

}  // namespace anneal
