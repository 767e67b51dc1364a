#include "reference_device.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "body_interpreter.h"
#include "symbolic/index_program.h"

namespace anneal {
namespace {

std::byte* address(BufferRef place) { return static_cast<std::byte*>(place.memory) + place.offset; }

class ReferenceMemory : public DeviceMemory {
 public:
  ReferenceMemory(int64_t bytes, std::shared_ptr<ReferenceLog> log)
      : ReferenceMemory(Bytes(static_cast<size_t>(std::max<int64_t>(1, bytes))), bytes,
                        std::move(log)) {
    log_->allocated_bytes += bytes;
    log_->newest_memory = handle();
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
      const bool tile = std::ranges::count(part.body.tiles, buffer) > 0;
      memory.push_back(address(arguments.buffers[static_cast<size_t>(part.arguments[i])]));
      const size_t bytes = static_cast<size_t>(elements) * byte_size(buffer->dtype);
      Bytes contents = tile ? Bytes(bytes) : Bytes({memory.back(), bytes});
      if (tile) std::ranges::fill(contents, std::byte{0});
      values.push_back(to_value({buffer->dtype, {elements}, std::move(contents)}));
    }
    std::vector<Value*> pointers;
    for (Value& value : values) pointers.push_back(&value);
    run_body(part.body, pointers, variable);
    for (NodeRef store : part.body.stores)
      for (size_t i = 0; i < values.size(); ++i)
        if (part.body.buffers[i] == store->source(0) &&
            std::ranges::count(part.body.tiles, store->source(0)) == 0) {
          const Storage stored = to_storage(values[i]);
          std::ranges::copy(stored.read(), memory[i]);
        }
  }

  Graph graph_;
  std::vector<NodeRef> variables_;
  std::vector<const KernelPhase*> phases_;
  std::shared_ptr<ReferenceLog> log_;
};

// How far two computations of one value may be apart, by dtype: sums run in another order, and
// functions of f32 are not those of f64.
double tolerance(DType dtype) {
  if (!is_float(dtype)) return 0;
  return dtype == DType::F64 ? 1e-9 : dtype == DType::F32 ? 1e-3 : dtype == DType::F16 ? 1e-2 : 0.3;
}

// Beside the largest value around, for cancellation leaves what rounding made of it.
bool agree(double got, double want, double scale, DType dtype) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want);
  if (got == want) return true;
  if (std::isinf(got) || std::isinf(want)) return false;
  return std::fabs(got - want) <= tolerance(dtype) * std::max(std::fabs(want), scale);
}

class CheckedExecutable : public Executable {
 public:
  CheckedExecutable(std::unique_ptr<Executable> inner, const Schedule& schedule,
                    std::span<const NodeRef> variables)
      : inner_(std::move(inner)),
        reference_(schedule, variables, std::make_shared<ReferenceLog>()) {
    for (const ScheduleBuffer& buffer : schedule.buffers) elements_.push_back(buffer.elements);
    for (const ScheduleBuffer& buffer : schedule.buffers) dtypes_.push_back(buffer.dtype);
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases) phases_.push_back(&phase);
    counts_ = IndexProgram(elements_, variables);
  }

  void run(const RunArguments& arguments, int begin, int end) const override {
    for (int phase = begin; phase < end; ++phase) run_phase(arguments, phase);
  }

 private:
  void run_phase(const RunArguments& arguments, int phase) const {
    const std::vector<int64_t> counts = counts_.evaluate(arguments.sizes);
    std::vector<Bytes> copies(dtypes_.size());
    std::vector<BufferRef> places(arguments.buffers.begin(), arguments.buffers.end());
    for (const KernelPart& part : *phases_[static_cast<size_t>(phase)])
      for (int argument : part.arguments) {
        const auto i = static_cast<size_t>(argument);
        const size_t bytes = static_cast<size_t>(counts[i]) * byte_size(dtypes_[i]);
        const bool tile = !arguments.buffers[i].memory;
        copies[i] = tile ? Bytes(bytes) : Bytes({address(arguments.buffers[i]), bytes});
        if (tile) std::ranges::fill(copies[i], std::byte{0});
        places[i] = {copies[i].data(), 0};
      }
    inner_->run(arguments, phase, phase + 1);
    reference_.run({places, arguments.sizes}, phase, phase + 1);
    for (const KernelPart& part : *phases_[static_cast<size_t>(phase)])
      for (NodeRef store : part.body.stores) check(part, store, copies, arguments);
  }

  void check(const KernelPart& part, NodeRef store, const std::vector<Bytes>& copies,
             const RunArguments& arguments) const {
    const auto slot = static_cast<size_t>(store->source(0)->arg.symbol->first);
    const auto i = static_cast<size_t>(part.arguments[slot]);
    if (!arguments.buffers[i].memory) return;
    const DType dtype = dtypes_[i];
    const auto count = static_cast<int64_t>(copies[i].size() / byte_size(dtype));
    const Value want = to_value({dtype, {count}, copies[i]});
    const Value got =
        to_value({dtype, {count}, Bytes({address(arguments.buffers[i]), copies[i].size()})});
    double scale = 0;
    for (int64_t k = 0; k < count; ++k)
      if (std::isfinite(want.as_double(k))) scale = std::max(scale, std::fabs(want.as_double(k)));
    for (int64_t k = 0; k < count; ++k)
      if (!agree(got.as_double(k), want.as_double(k), scale, dtype))
        throw InternalError(fmt::format("element {} of {} is {}, the reference says {}\n{}", k,
                                        count, got.as_double(k), want.as_double(k),
                                        to_text(part.body)));
  }

  std::unique_ptr<Executable> inner_;
  ReferenceExecutable reference_;
  std::vector<NodeRef> elements_;
  std::vector<DType> dtypes_;
  std::vector<const KernelPhase*> phases_;
  IndexProgram counts_;
};

class CheckedDevice : public Device {
 public:
  explicit CheckedDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return "checked"; }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  std::unique_ptr<Executable> compile(const Schedule& schedule,
                                      std::span<const NodeRef> variables) override {
    return std::make_unique<CheckedExecutable>(inner_->compile(schedule, variables), schedule,
                                               variables);
  }
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override { return inner_->allocate(bytes); }
  int64_t available_bytes() const override { return inner_->available_bytes(); }
  bool shares_host_memory() const override { return true; }
  void copy_in(std::span<const std::byte> from, BufferRef to) override {
    inner_->copy_in(from, to);
  }
  void copy_out(BufferRef from, std::span<std::byte> to) override { inner_->copy_out(from, to); }

 private:
  std::unique_ptr<Device> inner_;
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
  void copy_in(std::span<const std::byte> from, BufferRef to) override {
    std::ranges::copy(from, address(to));
  }
  void copy_out(BufferRef from, std::span<std::byte> to) override {
    std::copy_n(address(from), to.size(), to.data());
  }

 private:
  ReferenceOptions options_;
  std::shared_ptr<ReferenceLog> log_;
};

}  // namespace

std::unique_ptr<Device> make_checked_device(std::unique_ptr<Device> device) {
  return std::make_unique<CheckedDevice>(std::move(device));
}

std::unique_ptr<Device> make_reference_device(const ReferenceOptions& options,
                                              std::shared_ptr<ReferenceLog> log) {
  return std::make_unique<ReferenceDevice>(options, std::move(log));
}

}  // namespace anneal
