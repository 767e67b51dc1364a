// A program made ready for a device: its schedule, its code, and its memory plans for the sizes it
// was run with lately. Holds no memory and knows no tensors.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/os/mutex.h"
#include "runtime/capture/size_checks.h"
#include "runtime/device/device.h"
#include "runtime/program/canonical_program.h"
#include "schedule/memory/memory_plan.h"

namespace anneal {

// What follows from the sizes a program is run with.
struct SizedProgram {
  std::vector<int64_t> sizes;
  MemoryPlan memory;
  std::vector<std::vector<int64_t>> shapes;  // of the values
  mutable std::atomic<int> shown_runs = 0;   // of those that ANNEAL_DEBUG shows
};

class CompiledProgram {
 public:
  CompiledProgram(const CanonicalProgram& program, Device& device, NumberInputs numbers);
  // With its numbers as part of the code.
  CompiledProgram(const CanonicalProgram& program, Device& device)
      : CompiledProgram(program, device, NumberInputs(program.numbers())) {}

  const NumberInputs& numbers() const { return numbers_; }
  // Where a value comes from: a buffer of the schedule, or a slot as it is.
  struct Source {
    int buffer = -1, slot = -1;
  };
  std::span<const Source> values() const { return values_; }
  std::span<const int> assigned_slots() const { return assigned_slots_; }
  // By buffer of the schedule: the slot whose memory it is; -1 for the others.
  std::span<const int> slots() const { return slots_; }
  const Schedule& schedule() const { return schedule_; }
  const MemoryPlanner& planner() const { return *planner_; }
  int phases() const { return phases_; }
  const Executable* executable() const { return executable_.get(); }

  // Remembers the last few. `fresh` says whether it was made now. Any thread may call.
  std::shared_ptr<const SizedProgram> sized(std::span<const int64_t> sizes, bool* fresh);

  // A buffer of the schedule in words for people: where its value comes from in their program.
  std::string describe(int buffer) const;

 private:
  void check_limits(const Device& device) const;
  std::shared_ptr<const SizedProgram> make_sized(std::span<const int64_t> sizes) const;

  NumberInputs numbers_;
  std::vector<Source> values_;
  std::vector<int> assigned_slots_, slots_;
  Schedule schedule_;
  int phases_ = 0;
  SizeChecks checks_;
  IndexProgram dims_;  // of the values, one after another
  std::vector<size_t> ranks_;
  std::unique_ptr<MemoryPlanner> planner_;
  std::unique_ptr<Executable> executable_;
  std::string device_;
  int64_t max_buffer_bytes_;

  Mutex mutex_;
  std::list<std::shared_ptr<const SizedProgram>> recent_;  // the last one first
};

}  // namespace anneal
