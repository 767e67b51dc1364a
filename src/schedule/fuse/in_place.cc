#include "schedule/fuse/in_place.h"

#include <algorithm>
#include <set>

#include "ir/build.h"
#include "ir/index.h"
#include "schedule/fuse/dataflow.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// One flat copy from a buffer to another.
Fragment copy_of(const Rangified& program, int from, int to) {
  const ScheduleBuffer& source = program.buffers[static_cast<size_t>(from)];
  const ScheduleBuffer& target = program.buffers[static_cast<size_t>(to)];
  NodeRef always = make_const(Scalar::of_int(DType::Bool, 1));
  const int64_t most = std::max<int64_t>(1, bounds(source.elements).max);
  NodeRef axis = make_variable("copy", 0, most - 1);
  NodeRef value = make(Op::Load, {schedule_buffer_node(from, source), axis, always});
  NodeRef store = make(Op::Store, {schedule_buffer_node(to, target), axis, always, value, axis},
                       Arg(int64_t{1}));
  Fragment fragment;
  fragment.phases = {{store}};
  fragment.axes = {{axis, source.elements}};
  fragment.refresh();
  return fragment;
}

// `taken`: values and targets of those that are in place already.
bool can_be_in_place(const Rangified& program, const Dataflow& flow, const AssignedBuffer& assigned,
                     const std::set<int>& taken) {
  const ScheduleBuffer& value = program.buffers[static_cast<size_t>(assigned.value)];
  if (!value.is_temporary()) return false;
  if (taken.contains(assigned.value) || taken.contains(assigned.target)) return false;
  const int writer = flow.writer(assigned.value);
  if (!reads_only_what_it_replaces(program.fragments[static_cast<size_t>(writer)], assigned))
    return false;
  return std::ranges::none_of(flow.readers(assigned.target), [&](int reader) {
    return reader != writer && flow.masked_ranges(writer, reader);
  });
}

}  // namespace

bool reads_only_what_it_replaces(const Fragment& fragment, const AssignedBuffer& assigned) {
  NodeRef position = nullptr;
  for (const std::vector<NodeRef>& stores : fragment.phases)
    for (NodeRef store : stores)
      if (schedule_buffer_of(store->source(0)) == assigned.value) {
        if (position) return false;  // a scatter
        position = store->source(1);
      }
  for (const std::vector<NodeRef>& stores : fragment.phases)
    for (NodeRef node : topological_order(stores))
      if (node->op == Op::Load && schedule_buffer_of(node->source(0)) == assigned.target &&
          (node->source(1) != position || fragment.phases.size() > 1))
        return false;
  return true;
}

std::vector<AssignedBuffer> assign_in_place(Rangified& program, bool enabled) {
  std::vector<AssignedBuffer> in_place, copies;
  std::set<int> taken;
  Dataflow flow(program);
  for (const AssignedBuffer& assigned : program.assigned) {
    const bool possible = enabled && can_be_in_place(program, flow, assigned, taken);
    (possible ? in_place : copies).push_back(assigned);
    if (!possible) continue;
    taken.insert({assigned.value, assigned.target});
    flow.write_after_reads(assigned);
  }
  // What is copied from may be assigned itself, so all of it is set aside before anything is
  // overwritten.
  for (AssignedBuffer& assigned : copies) {
    if (!program.buffers[static_cast<size_t>(assigned.value)].external) continue;
    ScheduleBuffer aside = program.buffers[static_cast<size_t>(assigned.value)];
    aside.external = nullptr;
    aside.output = -1;
    program.buffers.push_back(aside);
    const int number = static_cast<int>(program.buffers.size()) - 1;
    program.fragments.push_back(copy_of(program, assigned.value, number));
    assigned.value = number;
  }
  for (const AssignedBuffer& assigned : copies)
    program.fragments.push_back(copy_of(program, assigned.value, assigned.target));
  return in_place;
}

}  // namespace anneal
