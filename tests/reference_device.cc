#include "reference_device.h"

#include <algorithm>
#include <cstring>

#include "body_interpreter.h"
#include "symbolic/index_program.h"

namespace anneal {
namespace {

std::byte* address(Place place) { return static_cast<std::byte*>(place.memory) + place.offset; }

class ReferenceMemory : public DeviceMemory {
 public:
  ReferenceMemory(int64_t bytes, std::shared_ptr<ReferenceLog> log)
      : ReferenceMemory(Bytes(static_cast<size_t>(std::max<int64_t>(1, bytes))), bytes,
                        std::move(log)) {
    log_->allocated_bytes += bytes;
    log_->most_allocated_bytes = std::max(log_->most_allocated_bytes, log_->allocated_bytes);
  }
  ~ReferenceMemory() override { log_->allocated_bytes -= bytes(); }

 private:
  ReferenceMemory(Bytes memory, int64_t bytes, std::shared_ptr<ReferenceLog> log)
      : DeviceMemory(memory.data(), bytes), memory_(std::move(memory)), log_(std::move(log)) {}

  Bytes memory_;
  std::shared_ptr<ReferenceLog> log_;
};

class ReferenceExecutable : public Executable {
 public:
  ReferenceExecutable(const Schedule& schedule, std::span<const NodeRef> variables,
                      std::shared_ptr<ReferenceLog> log)
      : log_(std::move(log)) {
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases) phases_.push_back(&phase);
    for (NodeRef variable : variables) variables_.push_back(clone({&variable, 1}, graph_)[0]);
  }

  void run(const RunArguments& arguments, int begin, int end) const override {
    for (int i = begin; i < end; ++i, ++log_->phases)
      for (const KernelPart& part : *phases_[static_cast<size_t>(i)]) run_part(part, arguments);
  }

 private:
  void run_part(const KernelPart& part, const RunArguments& arguments) const {
    auto variable = [&](NodeRef node) {
      for (size_t i = 0; i < variables_.size(); ++i)
        if (same_variable(variables_[i], node)) return arguments.sizes[i];
      throw InternalError("a kernel reads a size that is not given");
    };
    std::vector<Value> values;
    std::vector<std::byte*> memory;
    for (size_t i = 0; i < part.arguments.size(); ++i) {
      NodeRef buffer = part.body.buffers[i];
      const int64_t elements = interpret_index(buffer->dim(0), variable);
      memory.push_back(address(arguments.buffers[static_cast<size_t>(part.arguments[i])]));
      const size_t bytes = static_cast<size_t>(elements) * byte_size(buffer->dtype);
      values.push_back(to_value({buffer->dtype, {elements}, Bytes({memory.back(), bytes})}));
    }
    std::vector<Value*> pointers;
    for (Value& value : values) pointers.push_back(&value);
    run_body(part.body, pointers, variable);
    for (NodeRef store : part.body.stores)
      for (size_t i = 0; i < values.size(); ++i)
        if (part.body.buffers[i] == store->source(0)) {
          const Storage stored = to_storage(values[i]);
          std::ranges::copy(stored.bytes, memory[i]);
        }
  }

  Graph graph_;
  std::vector<NodeRef> variables_;
  std::vector<const KernelPhase*> phases_;
  std::shared_ptr<ReferenceLog> log_;
};

class ReferenceDevice : public Device {
 public:
  ReferenceDevice(const ReferenceOptions& options, std::shared_ptr<ReferenceLog> log)
      : options_(options), log_(log ? std::move(log) : std::make_shared<ReferenceLog>()) {}

  std::string_view name() const override { return "reference"; }
  const Capabilities& capabilities() const override { return options_.capabilities; }
  std::unique_ptr<Executable> compile(const Schedule& schedule,
                                      std::span<const NodeRef> variables) override {
    ++log_->compiled;
    return std::make_unique<ReferenceExecutable>(schedule, variables, log_);
  }
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    return std::make_unique<ReferenceMemory>(bytes, log_);
  }
  int64_t available_bytes() const override { return options_.available_bytes; }
  bool shares_host_memory() const override { return options_.shares_host_memory; }
  void copy_in(std::span<const std::byte> from, Place to) override {
    std::ranges::copy(from, address(to));
  }
  void copy_out(Place from, std::span<std::byte> to) override {
    std::copy_n(address(from), to.size(), to.data());
  }

 private:
  ReferenceOptions options_;
  std::shared_ptr<ReferenceLog> log_;
};

}  // namespace

std::unique_ptr<Device> make_reference_device(const ReferenceOptions& options,
                                              std::shared_ptr<ReferenceLog> log) {
  return std::make_unique<ReferenceDevice>(options, std::move(log));
}

}  // namespace anneal
