// What the runtime asks of a device: memory, and schedules made runnable. Which device it is,
// nobody above asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/execute/counters.h"
#include "schedule/schedule.h"
#include "target/target.h"

namespace anneal {

class KernelBench;
class TunedPlans;

// A stretch of a device's memory. `memory` is what the device calls it: an address where it has
// addresses, a handle where it has not.
struct BufferRef {
  void* memory = nullptr;
  int64_t offset = 0;
};

// Memory of a device, given back when this ends.
class DeviceMemory {
 public:
  DeviceMemory(void* handle, int64_t bytes) : handle_(handle), bytes_(bytes) {}
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // The device went away, and what this held with it.
  virtual bool is_lost() const { return false; }
  void* handle() const { return handle_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* handle_;
  int64_t bytes_;
};

struct RunArguments {
  std::span<const BufferRef> buffers;  // by buffer of the schedule
  std::span<const int64_t> sizes;      // by variable, as given to compile()
};

// The kernels of a schedule, ready to run. Several threads may run it at the same time.
class Executable {
 public:
  virtual ~Executable() = default;
  // Phases are counted over all kernels: those from begin on and before end. Whatever is asked of
  // the device later happens after them; Device::wait() says when they have ended.
  virtual void run(const RunArguments& arguments, int begin, int end) const = 0;
  // Runs the phases from the first bound on and before the last, waits, and gives the seconds
  // between each bound and the next; by the device's own clock where it is not the host's. A
  // UserError unless Device::has_clock().
  virtual std::vector<double> run_timed(const RunArguments& arguments,
                                        std::span<const int> bounds) const;
};

// For run_timed(): where the phases of each kernel begin, and where those of the last one end.
std::vector<int> kernel_bounds(const Schedule& schedule);

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // What it is, and what kernels for it may use of that. Neither changes: all that is compiled
  // follows from them (codegen/target_kernels.h).
  virtual const Target& target() const;
  virtual const Capabilities& capabilities() const = 0;

  // `variables`: the symbolic sizes, which may be nodes of any graph. The schedule outlives what is
  // made of it.
  virtual std::unique_ptr<Executable> compile(const Schedule& schedule,
                                              std::span<const NodeRef> variables) = 0;

  // Throws std::bad_alloc.
  virtual std::unique_ptr<DeviceMemory> allocate(int64_t bytes) = 0;
  // What could be allocated now, as far as can be known.
  virtual int64_t available_bytes() const = 0;

  // Whether an address of the host is a Place of this device, so that nothing needs to be copied.
  virtual bool shares_host_memory() const = 0;
  // Whether it tells how long kernels took.
  virtual bool has_clock() const { return true; }
  // What a search recorded, by which its kernels run (tune/tune.h); null: it takes none.
  virtual TunedPlans* tuned_plans() { return nullptr; }
  // Runs its kernels by themselves, for such a search; null: it takes none.
  virtual std::unique_ptr<KernelBench> kernel_bench();
  // Until all that runs has ended. Devices that share memory of the host never leave anything
  // running.
  virtual void wait() {}
  virtual void copy_in(std::span<const std::byte> from, BufferRef to) = 0;
  virtual void copy_out(BufferRef from, std::span<std::byte> to) = 0;

  virtual DeviceCounters counters() const { return {}; }
  // Devices may go away, with all they held; every call then fails with a UserError until this
  // opens them again. What was compiled stays good.
  virtual void recover() {}
};

}  // namespace anneal
