#include "cli/bench/prepared.h"

#include <array>
#include <chrono>

#include "cli/inspect/programs.h"
#include "runtime/program/compiled_program.h"

namespace anneal::cli {
namespace {

double seconds_of(auto&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// Members are in the order in which they need each other.
struct Prepared::Plan {
  Device& device;
  Contents contents{Bindings{}};
  Request request;
  CanonicalProgram program;
  CompiledProgram compiled;
  std::shared_ptr<const SizedProgram> sized;
  std::vector<std::shared_ptr<Storage>> inputs;  // memory of the host that is used as it is
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<BufferRef> places;  // by buffer of the schedule

  Plan(Device& on, const std::vector<Tensor>& results)
      : device(on),
        request{nodes_of(results), {}, &contents},
        program(request),
        compiled(program, device) {
    bool fresh = false;
    sized = compiled.sized({}, &fresh);
    const BufferRef arena =
        sized->memory.arena_bytes > 0 ? allocate(sized->memory.arena_bytes) : BufferRef{};
    for (size_t i = 0; i < compiled.schedule().buffers.size(); ++i) {
      const ScheduleBuffer& buffer = compiled.schedule().buffers[i];
      if (const int slot = compiled.slots()[i]; slot >= 0)
        places.push_back(place_of(program.slots()[static_cast<size_t>(slot)]));
      else if (buffer.is_temporary())
        places.push_back({arena.memory, sized->memory.offsets[i]});
      else
        places.push_back(allocate(sized->memory.bytes[i]));
    }
  }

  BufferRef allocate(int64_t bytes) {
    memory.push_back(device.allocate(bytes));
    return {memory.back()->handle(), 0};
  }

  BufferRef place_of(NodeRef input) {
    std::shared_ptr<Storage> storage = contents.find(input);
    if (device.shares_host_memory()) {
      inputs.push_back(storage);
      return {storage->write().data(), 0};
    }
    const BufferRef place = allocate(static_cast<int64_t>(storage->size()));
    device.copy_in(storage->read(), place);
    return place;
  }

  // By the device's clock where it has one: what it takes to ask for a run is not the kernels'.
  double run() const {
    const Executable* executable = compiled.executable();
    if (!executable) return 0;
    const RunArguments arguments{places, sized->sizes};
    if (device.has_clock())
      return executable->run_timed(arguments, std::array{0, compiled.phases()}).front();
    return seconds_of([&] {
      executable->run(arguments, 0, compiled.phases());
      device.wait();
    });
  }
};

Prepared::Prepared(const ChosenDevice& device, std::vector<Tensor> results)
    : results_(std::move(results)) {
  if (device.device()) plan_ = std::make_unique<Plan>(*device.device(), results_);
  run();
}

Prepared::~Prepared() = default;
Prepared::Prepared(Prepared&&) noexcept = default;

double Prepared::run() {
  if (plan_) return plan_->run();
  return seconds_of([&] { evaluate(results_); });
}

}  // namespace anneal::cli
