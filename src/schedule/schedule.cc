#include "schedule/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/node_map.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "schedule/cost.h"
#include "schedule/fragments/canonical.h"
#include "schedule/fragments/flatten_axes.h"
#include "schedule/fragments/masks.h"
#include "schedule/fragments/pick_terms.h"
#include "schedule/fragments/split_f32_products.h"
#include "schedule/fragments/split_reduce.h"
#include "schedule/fuse/binding_limit.h"
#include "schedule/fuse/dataflow.h"
#include "schedule/fuse/fuse_rows.h"
#include "schedule/fuse/fuse_tiles.h"
#include "schedule/fuse/in_place.h"
#include "schedule/fuse/kernel_length.h"
#include "schedule/fuse/rangeify.h"
#include "schedule/graph/activation_gradient.h"
#include "schedule/graph/scatter_as_reduction.h"
#include "schedule/passes.h"
#include "target/questions.h"

namespace anneal {
namespace {

// Fragments that can run at the same time, in the order of the steps they belong to.
using Step = std::vector<int>;

std::vector<Step> steps_of(const Dataflow& flow, const ScheduleOptions& options) {
  const std::vector<int> order = flow.order();
  if (is_disabled("merge", options.disabled)) {
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

namespace {

// ---- the passes

void reduce_all_scatters(Scheduling& state, const ScheduleOptions& options) {
  state.roots = scatters_as_reductions(state.roots, options.capabilities.schedule);
}

template <bool (*question)(const Capabilities&)>
bool asks(const Scheduling&, const ScheduleOptions& options) {
  return question(options.capabilities);
}

void keep_order_of_assignments(Scheduling& state) {
  for (const AssignedBuffer& assigned : state.in_place) state.flow->write_after_reads(assigned);
}

void make_fragments(Scheduling& state, const ScheduleOptions& options) {
  state.program = rangeify(state.roots, options);
  state.in_place = assign_in_place(state.program, !is_disabled("in-place", options.disabled));
  state.flow.emplace(state.program);
  keep_order_of_assignments(state);
}

void make_tiles(Scheduling& state, const ScheduleOptions& options) {
  fuse_tiles(state.program, *state.flow, state.in_place, options);
  keep_order_of_assignments(state);
}

// Stores values without which a kernel would be too long, or bind too many buffers. What depends on
// the roots is made again then.
void find_values_over_limits(Scheduling& state, const ScheduleOptions& options) {
  const Capabilities& capabilities = options.capabilities;
  const bool divide = !is_disabled("divide", options.disabled) && state.round < kMostDivisions;
  state.over_limit.clear();
  if (divide) state.over_limit = values_over_length(state.program, capabilities, kManyNodes);
  if (state.over_limit.empty())
    state.over_limit = values_over_limit(state.program, memory_of(state.program, state.in_place),
                                         capabilities.max_buffers);
  if (state.over_limit.empty() && divide)
    state.over_limit = values_over_length(state.program, capabilities);
  if (!state.over_limit.empty())
    state.roots = with_stored(state.roots, state.over_limit, state.stored_for_limits);
}

// Why the values are stored that a limit asked for.
void name_limits(Scheduling& state, const ScheduleOptions&) {
  for (const WantedValue& wanted : state.program.wanted)
    if (const OverLimit* over = state.stored_for_limits.find(wanted.value))
      state.program.stored.push_back(
          {wanted.value->source(0), wanted.buffer, over->reason, {}, over->limit});
}

void split_matrix_products(Scheduling& state, const ScheduleOptions& options) {
  split_products(state.program, *state.flow, options);
  keep_order_of_assignments(state);
}

void make_kernels(Scheduling& state, const ScheduleOptions& options) {
  const std::vector<Step> steps = steps_of(*state.flow, options);
  add_kernels(state.program, steps, memory_of(state.program, state.in_place), state.schedule);
  add_unfused_edges(state.program, steps, state.schedule);
  state.schedule.outputs = state.program.outputs;
  state.schedule.buffers = std::move(state.program.buffers);
}

template <void (*function)(Rangified&)>
void apply(Scheduling& state, const ScheduleOptions&) {
  function(state.program);
}

// ---- what the runner asks of a state

std::vector<NodeRef> stores_of(const Rangified& program) {
  std::vector<NodeRef> stores;
  for (const Fragment& fragment : program.fragments)
    for (const std::vector<NodeRef>& phase : fragment.phases)
      stores.insert(stores.end(), phase.begin(), phase.end());
  return stores;
}

std::string text_of(const Scheduling& state) {
  if (!state.schedule.kernels.empty()) {
    std::string text;
    for (const Kernel& kernel : state.schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) text += to_text(part.body);
    return text;
  }
  return print(state.flow ? stores_of(state.program) : state.roots);
}

uint64_t fingerprint(const Scheduling& state) {
  uint64_t hash = state.program.fragments.size() + state.schedule.kernels.size();
  auto add = [&](std::span<const NodeRef> nodes) {
    for (NodeRef node : nodes) hash = (hash ^ node->key.low) * 0x9E3779B97F4A7C15;
  };
  add(state.roots);
  if (state.flow) add(stores_of(state.program));
  return hash;
}

std::string problem_of(const Scheduling& state) {
  for (const Kernel& kernel : state.schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        if (std::string problem = verify(part.body); !problem.empty())
          return fmt::format("{}\n{}", problem, to_text(part.body));
  if (!state.schedule.kernels.empty() || state.flow) return "";
  return verify(state.roots, kProgramStage);
}

StateSize size_of(const Scheduling& state) {
  const std::vector<NodeRef> roots = state.flow ? stores_of(state.program) : state.roots;
  return {static_cast<int64_t>(topological_order(roots).size()),
          static_cast<int64_t>(state.program.fragments.size())};
}

constexpr bool kRequired = true;
constexpr std::string_view kFragments = "fragments";

}  // namespace

const SchedulePasses& graph_passes() {
  static const SchedulePasses table{
      "graph",
      kFragments,
      {
          {"keep-replaced",
           [](Scheduling& state, const ScheduleOptions&) { keep_what_is_replaced(state.roots); },
           nullptr,
           {},
           kRequired},
          {"scatter-as-reduction",
           reduce_all_scatters,
           asks<needs_many_threads>,
           {},
           !kRequired,
           scatter_rules()},
          {"activation-gradient",
           [](Scheduling& state, const ScheduleOptions&) {
             state.roots = save_activation_gradients(state.roots);
           },
           asks<makes_operands_in_workgroups>,
           {},
           !kRequired,
           activation_gradient_rules()},
      },
      text_of,
      problem_of,
      fingerprint,
      size_of};
  return table;
}

const SchedulePasses& fusion_passes() {
  static const SchedulePasses table{
      "fusion",
      kFragments,
      {
          {"rangeify", make_fragments, nullptr, {}, kRequired, {}, {"inline", "in-place"}},
          {"fuse-tiles", make_tiles,
           [](const Scheduling&, const ScheduleOptions& options) {
             return options.capabilities.tiles;
           }},
          {"fuse-rows",
           [](Scheduling& state, const ScheduleOptions& options) {
             fuse_rows(state.program, *state.flow, state.in_place, options);
           }},
          {"limits", find_values_over_limits, nullptr, {}, kRequired, {}, {"divide"}},
      },
      text_of,
      problem_of,
      fingerprint,
      size_of};
  return table;
}

const SchedulePasses& fragment_passes() {
  static const SchedulePasses table{
      "fragments",
      kFragments,
      {
          {"name-limits", name_limits, nullptr, {}, kRequired},
          {"pick-terms", apply<pick_terms>, nullptr, {}, !kRequired, pick_terms_rules()},
          {"keep-masks", apply<keep_masks>, asks<skips_blocks_of_products>},
          {"flatten-axes", apply<flatten_axes>, asks<numbers_elements_by_thread>},
          {"split-f32-products", split_matrix_products,
           [](const Scheduling&, const ScheduleOptions& options) {
             return options.capabilities.matrix_element_bytes > 0;
           }},
          {"split-reduce",
           [](Scheduling& state, const ScheduleOptions& options) {
             split_reductions(state.program, memory_of(state.program, state.in_place), options);
           }},
          {"kernels", make_kernels, nullptr, {}, kRequired, {}, {"merge"}},
      },
      text_of,
      problem_of,
      fingerprint,
      size_of};
  return table;
}

Schedule schedule_program(std::span<const NodeRef> roots, const ScheduleOptions& options) {
  Scheduling state;
  state.schedule.graph = std::make_unique<Graph>();
  state.roots = clone(roots, *state.schedule.graph);
  GraphScope scope(*state.schedule.graph);
  run_passes(graph_passes(), state, options);
  run_passes(fusion_passes(), state, options);
  while (!state.over_limit.empty()) {
    if (state.round++ == kMostRounds) throw InternalError("no end of values to store for a limit");
    run_passes(fusion_passes(), state, options);
  }
  run_passes(fragment_passes(), state, options);
  return std::move(state.schedule);
}

}  // namespace anneal
