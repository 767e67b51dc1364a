// Movement becomes index arithmetic, and it is decided which values are stored: a walk from the
// results to the inputs, in which every use of a value says at which coordinates it wants it.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace anneal {

// A kernel in the making: one stored value, over buffers numbered as in the schedule.
struct Fragment {
  std::vector<std::vector<NodeRef>> phases;  // Store nodes
  std::vector<Axis> axes;                    // of all of its loops
  std::vector<NodeRef> nodes;                // of the program, that are computed in it
  bool is_product = false;                   // sums products, as a matmul or a convolution does
  std::vector<int> reads, writes;            // buffers, each once, ascending: see refresh()
  double operations = 0;                     // code_size() of all phases: see refresh()
  std::vector<NodeRef> tile_axes;            // see KernelBody
  std::vector<int> tiles;

  void refresh();  // after the phases have changed
};

// Why a value has memory of its own.
struct StoredValue {
  NodeRef value;
  int buffer;
  UnfusedReason reason;
  UnfusedCost cost = {};
  BufferLimit limit = {};
};

// A value that the program asks to be stored: a Contiguous.
struct WantedValue {
  NodeRef value;
  int buffer;
};

struct AssignedBuffer {
  int value, target;  // buffers: the first is to be stored in the second
};

struct Rangified {
  std::vector<ScheduleBuffer> buffers;
  std::vector<Fragment> fragments;  // producers first
  std::vector<StoredValue> stored;  // those that could have been computed where they are used
  std::vector<WantedValue> wanted;
  std::vector<AssignedBuffer> assigned;
  std::vector<int> outputs;
};

// In the current graph.
Rangified rangeify(std::span<const NodeRef> roots, const ScheduleOptions& options);

// The node that stands for a buffer of the schedule, in loads and stores.
NodeRef schedule_buffer_node(int number, const ScheduleBuffer& buffer);
inline int schedule_buffer_of(NodeRef buffer) {
  return static_cast<int>(buffer->arg.symbol->first);
}

}  // namespace anneal
