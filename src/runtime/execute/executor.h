// Runs programs on a device: compiles what is new, remembers what it has compiled, finds memory,
// launches. Results do not depend on what was run before, but for the rounding of numbers that a
// kernel reads instead of having them folded into others.
#pragma once

#include <memory>
#include <vector>

#include "base/os/mutex.h"
#include "runtime/device/device.h"
#include "runtime/execute/counters.h"
#include "runtime/execute/evaluator.h"
#include "runtime/program/program_cache.h"

namespace anneal {

struct ExecutorOptions {
  size_t most_programs = 512;        // that are remembered
  int64_t memory_limit = INT64_MAX;  // bytes of temporaries and results of one run
  // Memory of temporaries is filled with a pattern before its first and after its last use, to
  // find reads of what is not there. Also by ANNEAL_POISON=1.
  bool poison = false;

  static ExecutorOptions from_environment();
};

class Executor : public Evaluator {
 public:
  explicit Executor(std::unique_ptr<Device> device,
                    const ExecutorOptions& options = ExecutorOptions::from_environment());

  std::vector<std::shared_ptr<Storage>> run(const Request& request) override;
  std::unique_ptr<Plan> plan(const CanonicalProgram& program) override;

  Device& device() { return *device_; }
  RuntimeCounters counters() const override;
  const Capabilities* capabilities() const override { return &device_->capabilities(); }
  size_t program_count() const;

 private:
  // What a run works on.
  struct Launch {
    std::vector<int64_t> sizes;
    std::vector<std::shared_ptr<Storage>> slots;
    std::vector<const Storage*> written_later;           // by the caller, after the run
    std::vector<std::shared_ptr<Storage>> results = {};  // where to; none: new memory
  };
  class Run;
  class ReadyPlan;

  std::vector<std::shared_ptr<Storage>> launch(CompiledProgram& program, Launch launch);
  std::shared_ptr<CompiledProgram> compiled(const CanonicalProgram& program,
                                            ProgramCache::Numbers numbers);

  // Memory for temporaries: one that is free, or a new one. Nothing is held while it is allocated
  // that could be given back first.
  std::unique_ptr<DeviceMemory> take_arena(int64_t bytes);
  void give_back(std::unique_ptr<DeviceMemory> arena);
  void drop_lost_arenas();           // the lock is held
  int64_t free_arena_bytes() const;  // of the one that would make room

  std::shared_ptr<Device> device_;
  ExecutorOptions options_;

  mutable Mutex mutex_;  // of everything below
  ProgramCache programs_;
  std::vector<std::unique_ptr<DeviceMemory>> free_arenas_;
  RuntimeCounters counters_;
};

}  // namespace anneal
