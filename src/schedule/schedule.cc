#include "schedule/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/node_map.h"
#include "schedule/canonical.h"
#include "schedule/dataflow.h"
#include "schedule/divide.h"
#include "schedule/flatten_axes.h"
#include "schedule/group.h"
#include "schedule/in_place.h"
#include "schedule/limit.h"
#include "schedule/masks.h"
#include "schedule/matrix_products.h"
#include "schedule/pick_terms.h"
#include "schedule/rangeify.h"
#include "schedule/slopes.h"
#include "schedule/split_reduce.h"
#include "schedule/spread_scatter.h"
#include "schedule/tile_group.h"

namespace anneal {
namespace {

constexpr int kMostRounds = 100;  // of storing something more to keep a limit
// Of dividing what is too long: the first one nearly always does it, and a kernel that is somewhat
// too long is no mistake.
constexpr int kMostDivisions = 8;
// It takes long to find what keeps a limit among more.
constexpr size_t kManyNodes = 2048;

bool enabled(const ScheduleOptions& options, std::string_view pass) {
  return std::ranges::count(options.disabled, pass) == 0;
}

// Fragments that can run at the same time, in the order of the steps they belong to.
using Step = std::vector<int>;

std::vector<Step> steps_of(const Dataflow& flow, const ScheduleOptions& options) {
  const std::vector<int> order = flow.order();
  if (!enabled(options, "merge")) {
    std::vector<Step> steps;
    for (int fragment : order) steps.push_back({fragment});
    return steps;
  }
  const std::vector<int> level = flow.levels();
  std::vector<Step> levels;
  for (int fragment : order) {
    const auto number = static_cast<size_t>(level[static_cast<size_t>(fragment)]);
    levels.resize(std::max(levels.size(), number + 1));
    levels[number].push_back(fragment);
  }
  return levels;  // their parts are bound one by one
}

// Where each buffer really is: a value that is assigned in place is in its target.
std::vector<int> memory_of(const Rangified& program, std::span<const AssignedBuffer> in_place) {
  std::vector<int> memory;
  for (size_t i = 0; i < program.buffers.size(); ++i) memory.push_back(static_cast<int>(i));
  for (const AssignedBuffer& assigned : in_place)
    memory[static_cast<size_t>(assigned.value)] = assigned.target;
  return memory;
}

void add_kernels(const Rangified& program, const std::vector<Step>& steps,
                 std::span<const int> memory, Schedule& schedule) {
  for (const Step& step : steps) {
    Kernel kernel;
    NodeMap<char> seen;
    for (int number : step) {
      const Fragment& fragment = program.fragments[static_cast<size_t>(number)];
      for (size_t phase = 0; phase < fragment.phases.size(); ++phase) {
        kernel.phases.resize(std::max(kernel.phases.size(), phase + 1));
        kernel.phases[phase].push_back(
            canonical_part(fragment, fragment.phases[phase], program.buffers, memory));
      }
      for (NodeRef node : fragment.nodes)
        if (seen.insert(node, 1).second) kernel.nodes.push_back(node);
    }
    schedule.kernels.push_back(std::move(kernel));
  }
}

void add_unfused_edges(const Rangified& program, const std::vector<Step>& steps,
                       Schedule& schedule) {
  std::vector<int> kernel_of_writer(program.buffers.size(), -1);
  std::vector<std::vector<int>> readers(program.buffers.size());
  for (size_t kernel = 0; kernel < steps.size(); ++kernel)
    for (int number : steps[kernel]) {
      const Fragment& fragment = program.fragments[static_cast<size_t>(number)];
      for (int buffer : fragment.writes)
        kernel_of_writer[static_cast<size_t>(buffer)] = static_cast<int>(kernel);
      for (int buffer : fragment.reads)
        readers[static_cast<size_t>(buffer)].push_back(static_cast<int>(kernel));
    }
  for (const StoredValue& stored : program.stored) {
    const auto buffer = static_cast<size_t>(stored.buffer);
    std::ranges::sort(readers[buffer]);
    int previous = -1;
    for (int reader : readers[buffer])
      if (reader != kernel_of_writer[buffer] && reader != previous) {
        schedule.unfused.push_back({kernel_of_writer[buffer], reader, stored.buffer, stored.reason,
                                    stored.cost, stored.value, stored.limit});
        previous = reader;
      }
  }
}

// A root that is a buffer wants the contents from before the step: it is copied where something is
// assigned to that buffer.
void keep_what_is_replaced(std::vector<NodeRef>& roots) {
  NodeMap<char> replaced;
  for (NodeRef root : roots)
    if (root->op == Op::Assign) replaced[root->source(0)] = 1;
  for (NodeRef& root : roots)
    if (replaced.contains(root)) root = make(Op::Contiguous, {root});
}

void check(const Schedule& schedule) {
#ifndef NDEBUG
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        if (std::string problem = verify(part.body); !problem.empty())
          throw InternalError(fmt::format("schedule: {}\n{}", problem, to_text(part.body)));
#else
  (void)schedule;
#endif
}

}  // namespace

std::string_view name(UnfusedReason reason) {
  switch (reason) {
    case UnfusedReason::Reuse: return "reuse";
    case UnfusedReason::Dtype: return "dtype";
    case UnfusedReason::Uses: return "uses";
    case UnfusedReason::Reduce: return "reduce";
    case UnfusedReason::Product: return "product";
    case UnfusedReason::Shape: return "shape";
    case UnfusedReason::Size: return "size";
    case UnfusedReason::Length: return "length";
    case UnfusedReason::Order: return "order";
    case UnfusedReason::Limit: return "limit";
    case UnfusedReason::Disabled: return "disabled";
  }
  return "";
}

Schedule schedule_program(std::span<const NodeRef> roots, const ScheduleOptions& options) {
  Schedule schedule;
  schedule.graph = std::make_unique<Graph>();
  std::vector<NodeRef> copies = clone(roots, *schedule.graph);
  GraphScope scope(*schedule.graph);
  keep_what_is_replaced(copies);
  if (enabled(options, "spread-scatter")) copies = spread_scatters(copies, options.capabilities);
  const bool groups_make_operands =
      options.capabilities.group_threads > 0 && options.capabilities.stage_products;
  if (groups_make_operands && enabled(options, "slopes")) copies = store_slopes(copies);
  NodeMap<OverLimit> stored_for_limits;
  for (int round = 0;; ++round) {
    Rangified program = rangeify(copies, options);
    const std::vector<AssignedBuffer> in_place =
        assign_in_place(program, enabled(options, "in-place"));
    Dataflow flow(program);
    for (const AssignedBuffer& assigned : in_place) flow.write_after_reads(assigned);
    if (options.capabilities.tiles && enabled(options, "tile")) {
      tile_fragments(program, flow, in_place, options);
      for (const AssignedBuffer& assigned : in_place) flow.write_after_reads(assigned);
    }
    if (enabled(options, "group")) group_fragments(program, flow, in_place, options);
    const bool divide = enabled(options, "divide") && round < kMostDivisions;
    std::vector<OverLimit> values;
    if (divide) values = values_over_length(program, options.capabilities, kManyNodes);
    if (values.empty())
      values = values_over_limit(program, memory_of(program, in_place),
                                 options.capabilities.max_buffers);
    if (values.empty() && divide) values = values_over_length(program, options.capabilities);
    if (!values.empty()) {
      if (round == kMostRounds) throw InternalError("no end of values to store for a limit");
      copies = with_stored(copies, values, stored_for_limits);
      continue;
    }
    for (const WantedValue& wanted : program.wanted)
      if (const OverLimit* over = stored_for_limits.find(wanted.value))
        program.stored.push_back(
            {wanted.value->source(0), wanted.buffer, over->reason, {}, over->limit});
    if (enabled(options, "pick")) pick_terms(program);
    if (options.capabilities.group_threads > 0 && enabled(options, "masks")) keep_masks(program);
    if (options.capabilities.group_threads > 0 && enabled(options, "flatten"))
      flatten_axes(program);
    if (options.capabilities.matrix_element_bytes > 0 && enabled(options, "matrices")) {
      split_products(program, flow, options);
      for (const AssignedBuffer& assigned : in_place) flow.write_after_reads(assigned);
    }
    if (enabled(options, "split-reduce"))
      split_reductions(program, memory_of(program, in_place), options);
    const std::vector<Step> steps = steps_of(flow, options);
    add_kernels(program, steps, memory_of(program, in_place), schedule);
    add_unfused_edges(program, steps, schedule);
    schedule.outputs = program.outputs;
    schedule.buffers = std::move(program.buffers);
    check(schedule);
    return schedule;
  }
}

}  // namespace anneal
