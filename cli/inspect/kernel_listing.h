// A built-in program taken down to kernels, with what is to be said of each: nothing runs and
// nothing is printed here.
#pragma once

#include <string>
#include <vector>

#include "kernel/program/program.h"
#include "models/program.h"
#include "schedule/work_count.h"
#include "target/capabilities.h"
#include "transform/phase.h"

namespace anneal::cli {

// One body of a kernel, and the program it is run as.
struct ListedPart {
  size_t phase = 0;  // of the kernel
  const KernelPart* part = nullptr;
  Program program;
  int64_t cells = 0;
};

struct ListedKernel {
  std::string name;                // the public operations it comes from
  std::vector<Phase> step_phases;  // of the step, that its nodes belong to
  size_t nodes = 0;
  WorkCount work;
  std::vector<ListedPart> parts;

  bool crosses() const;  // holds forward and backward nodes
  int64_t cells() const;
};

struct KernelListing {
  Schedule schedule;
  std::vector<ListedKernel> kernels;
  size_t nodes = 0;  // of the simplified program
  WorkCount work;
  MemoryCount memory;

  size_t crossing() const;  // kernels
};

// The whole step, or only what the loss needs.
KernelListing list_kernels(const models::Program& program, bool forward,
                           const Capabilities& capabilities);

}  // namespace anneal::cli
