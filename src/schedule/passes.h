// The passes of the scheduler, in three tables: over the graph; those that make fragments and fuse
// them, which begin again where a value has to be stored for a limit; and over the fragments.
#pragma once

#include <optional>
#include <vector>

#include "ir/node_map.h"
#include "rewrite/passes.h"
#include "schedule/fuse/binding_limit.h"
#include "schedule/fuse/dataflow.h"
#include "schedule/fuse/rangeify.h"
#include "schedule/schedule.h"

namespace anneal {

// What the passes work on, in the order in which it comes to be.
struct Scheduling {
  std::vector<NodeRef> roots = {};
  int round = 0;  // of storing something more to keep a limit
  NodeMap<OverLimit> stored_for_limits;
  Rangified program = {};
  std::vector<AssignedBuffer> in_place = {};
  std::optional<Dataflow> flow = std::nullopt;  // of the program
  std::vector<OverLimit> over_limit = {};       // none: fusion is done
  Schedule schedule = {};
};

using SchedulePasses = PassTable<Scheduling, ScheduleOptions>;
const SchedulePasses& graph_passes();
const SchedulePasses& fusion_passes();
const SchedulePasses& fragment_passes();

}  // namespace anneal
