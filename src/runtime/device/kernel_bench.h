// Kernels by themselves on memory of a device, for those who try and measure them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/lower.h"
#include "runtime/device/device.h"
#include "runtime/program/distinct_bodies.h"

namespace anneal {

class BenchKernel {
 public:
  BenchKernel() = default;
  virtual ~BenchKernel() = default;
  BenchKernel(const BenchKernel&) = delete;
  BenchKernel& operator=(const BenchKernel&) = delete;
};

class KernelBench {
 public:
  KernelBench() = default;
  virtual ~KernelBench() = default;
  KernelBench(const KernelBench&) = delete;
  KernelBench& operator=(const KernelBench&) = delete;

  // What the device compiles once and for itself: its records are of these.
  virtual ShiftedBodies bodies_of(const Schedule& schedule) const;
  // So many are compiled together in about the time of one.
  virtual int compiled_at_once() const = 0;
  // Of one body without symbolic sizes, in its graph. Nothing is kept on disk.
  virtual std::vector<std::shared_ptr<const BenchKernel>> compile(
      const KernelBody& body, std::span<const LoweredBody> lowered) = 0;
  // So many times one after the other on the same memory, by buffer of the body: waits, and gives
  // the seconds of one.
  virtual double run(const BenchKernel& kernel, std::span<const BufferRef> places, int times) = 0;
  // What one run of few microseconds needs to be told from none.
  virtual int most_times() const { return 1; }
};

}  // namespace anneal
