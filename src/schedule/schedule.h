// A program as kernels in order: what is stored, what is fused, and why the rest is not.
// A function of structure alone; every size may be symbolic.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "body/kernel_body.h"
#include "rewrite/rewriter.h"
#include "target/capabilities.h"

namespace anneal {

// Memory a schedule speaks of.
struct ScheduleBuffer {
  DType dtype = DType::F32;
  NodeRef elements = nullptr;  // how many: an index expression
  NodeRef external = nullptr;  // the program's Buffer node whose memory this is
  int output = -1;             // which root's value this is to hold; -1: only needed meanwhile
  bool tile = false;           // lives in fast memory, inside one kernel
  bool wanted = false;         // the program asks for it to be stored: contiguous
  // None of these: a temporary, whose place the memory plan chooses.
  bool is_temporary() const { return !external && output < 0 && !tile; }
};

// One body of a kernel and the memory it works on.
struct KernelPart {
  KernelBody body;
  std::vector<int> arguments;  // body.buffers[i] is schedule.buffers[arguments[i]]
};

// The parts of a phase are independent of each other; a phase begins when the one before has ended.
using KernelPhase = std::vector<KernelPart>;

// What decided that a value is stored and not computed where it is used.
enum class UnfusedReason : uint8_t {
  Reuse,     // to compute it again costs more than to store it
  Dtype,     // the same, and only because its dtype is narrow: as f32 it would not be stored
  Uses,      // so many would compute it for themselves that it is not looked at
  Reduce,    // a reduction would be made again, for each that needs it or inside another one
  Product,   // an operand of products, which every group of threads would make again
  Shape,     // others run over it in another order, or over a part of it
  Size,      // too few rows would be left to share the work
  Length,    // the kernel would be so long that it takes too long to compile
  Order,     // something else has to be computed between the two
  Limit,     // the device has no room for more in one kernel: see BufferLimit
  Disabled,  // the pass that computes values where they are used is left out
};
std::string_view name(UnfusedReason reason);

// What was compared where costs decided, in nanoseconds (an estimate): `again` is the greater one.
// Zero where something else did.
struct UnfusedCost {
  double again = 0, stored = 0;
  bool decided() const { return again > stored; }
};

// How many buffers one kernel would have bound, and how many it may.
struct BufferLimit {
  int needed = 0, allowed = 0;
};

// A value one kernel stores and another loads.
struct UnfusedEdge {
  int producer = -1, consumer = -1;  // kernels
  int buffer = -1;
  UnfusedReason reason = UnfusedReason::Reuse;
  UnfusedCost cost;
  NodeRef value = nullptr;  // of the program
  BufferLimit limit;        // where that is the reason
};

struct Kernel {
  std::vector<KernelPhase> phases;
  std::vector<NodeRef> nodes;  // of the program, that are computed in it
};

struct Schedule {
  std::unique_ptr<Graph> graph;  // owns every node of the bodies
  std::vector<ScheduleBuffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<UnfusedEdge> unfused;
  std::vector<int> outputs;  // the buffer that holds root i in the end; external for an Assign
};

// `disabled`: passes of schedule/passes.h to leave out, by name; and parts of them: "inline" and
// "in-place" of rangeify, "divide" of limits, "merge" of kernels.
struct ScheduleOptions {
  Capabilities capabilities;
  std::vector<std::string> disabled;
  // Tiles and split reductions are worth it from sizes this many times smaller on: for tests.
  double threshold_scale = 1;
};

// The roots are of the current graph, simplified, without marks for gradients. Assignments among
// what they need must be roots themselves; they are stored after every read.
Schedule schedule_program(std::span<const NodeRef> roots, const ScheduleOptions& options = {});

}  // namespace anneal
