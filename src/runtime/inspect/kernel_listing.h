// A program taken down to kernels of a target, with what is to be said of each. Nothing runs and
// nothing is printed here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/key.h"
#include "kernel/program/program.h"
#include "runtime/program/canonical_program.h"
#include "schedule/work_count.h"
#include "target/capabilities.h"
#include "transform/phase.h"

namespace anneal {

// One body of a kernel, and the program it is run as.
struct ListedPart {
  size_t phase = 0;  // of the kernel
  const KernelPart* part = nullptr;
  Program program;
  int64_t cells = 0;
};

struct ListedKernel {
  std::string name;                // the public operations it comes from
  std::vector<Phase> step_phases;  // of the step, that its nodes belong to; none: not known
  size_t nodes = 0;
  WorkCount work;
  std::vector<ListedPart> parts;

  bool crosses() const;  // holds forward and backward nodes
  int64_t cells() const;
};

struct KernelListing {
  Key key;  // of the program
  Schedule schedule;
  std::vector<ListedKernel> kernels;
  size_t nodes_before = 0, nodes = 0;  // of the program as it was built, and simplified
  WorkCount work;
  MemoryCount memory;

  size_t crossing() const;  // kernels
};

// As a device of these capabilities would run it; ANNEAL_DEBUG calls that `where`. What gradients,
// nodes of the program as it was captured, are made of tells what is backward; without any, phases
// are not known.
KernelListing list_kernels(const CanonicalProgram& program, const Capabilities& capabilities,
                           std::string_view where, std::span<const NodeRef> gradients = {});

}  // namespace anneal
