// Schedules a program as a device would run it and shows the result. Nothing runs, so that inputs
// need no memory. Must not count or format what the library can: bodies, programs and work are its.
#include "kernels.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/error.h>

#include "base/call_site.h"
#include "ir/print.h"
#include "json.h"
#include "output.h"
#include "programs.h"
#include "schedule/memory_plan.h"
#include "schedule/statistics.h"
#include "symbolic/bounds.h"
#include "transform/phase.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

constexpr std::array kPhases{Phase::Forward, Phase::Backward, Phase::Update};

// What is shown of one kernel.
struct Line {
  std::string name;
  std::vector<Phase> phases;  // of its nodes, in order
  size_t nodes = 0;
  WorkCount work;
  const Kernel* kernel = nullptr;

  bool crosses() const {
    return phases.size() > 1 && phases[0] == Phase::Forward && phases[1] == Phase::Backward;
  }
};

// Bytes that a run needs, known before it.
struct Memory {
  int64_t inputs = 0;                  // the program's own: parameters, data, optimizer state
  int64_t outputs = 0;                 // results that are no assignments
  int64_t temporaries = 0, arena = 0;  // meanwhile: all of them, and what they take together

  int64_t peak() const { return inputs + outputs + arena; }
};

struct Listing {
  Schedule schedule;
  std::vector<Line> lines;
  size_t nodes = 0;  // of the simplified program
  WorkCount work;
  size_t crossing = 0;  // kernels with forward and backward nodes
  Memory memory;
};

// Phases by structure: a schedule has copies of the program's nodes.
using PhaseTable = std::map<Key, Phase>;

// The public operations its nodes come from, most frequent first.
std::string kernel_name(const Kernel& kernel) {
  std::map<std::string_view, int> counts;
  for (NodeRef node : kernel.nodes)
    if (node->origin && !is_movement(node->op)) ++counts[node->origin->operation];
  std::vector<std::pair<int, std::string_view>> ranked;
  for (const auto& [operation, count] : counts) ranked.emplace_back(-count, operation);
  std::ranges::sort(ranked);
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(ranked.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : "+", ranked[i].second);
  return ranked.size() > kShown ? text + "+…" : text;
}

std::vector<Phase> phases_of(const Kernel& kernel, const PhaseTable& table) {
  std::array<bool, kPhases.size()> found{};
  for (NodeRef node : kernel.nodes)
    if (auto entry = table.find(node->key); entry != table.end())
      found[static_cast<size_t>(entry->second)] = true;
  std::vector<Phase> phases;
  for (Phase phase : kPhases)
    if (found[static_cast<size_t>(phase)]) phases.push_back(phase);
  return phases;
}

Memory memory_of(const Schedule& schedule) {
  const MemoryPlan plan =
      plan_memory(schedule, [](NodeRef variable) { return bounds(variable).max; });
  Memory memory;
  memory.arena = plan.arena_bytes;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const ScheduleBuffer& buffer = schedule.buffers[i];
    (buffer.external         ? memory.inputs
     : buffer.is_temporary() ? memory.temporaries
                             : memory.outputs) += plan.bytes[i];
  }
  return memory;
}

Listing list(const models::Program& program, const KernelsOptions& options) {
  // Loss, gradients and updates are simplified together, as they are compiled together.
  const std::vector<NodeRef> roots =
      simplify_program(options.forward ? std::vector{program.loss.node()} : step_roots(program));
  const auto gradients = options.forward ? 0 : program.gradients.size();
  const std::span<const NodeRef> all(roots);
  PhaseTable table;
  const NodeMap<Phase> phase_of =
      phases(all.first(1), all.subspan(1, gradients), all.subspan(1 + gradients));
  for (NodeRef node : topological_order(roots))
    if (const Phase* phase = phase_of.find(node)) table[node->key] = *phase;

  Listing listing;
  listing.nodes = count_nodes(roots);
  listing.schedule = schedule_program(roots);
  listing.memory = memory_of(listing.schedule);
  for (const Kernel& kernel : listing.schedule.kernels) {
    Line& line = listing.lines.emplace_back();
    line = {kernel_name(kernel), phases_of(kernel, table), kernel.nodes.size(), count_work(kernel),
            &kernel};
    listing.work += line.work;
    listing.crossing += line.crosses() ? 1 : 0;
  }
  return listing;
}

// ---- text

Colour colour_of(const Line& line) {
  if (line.crosses()) return Colour::Bold;
  if (line.phases.empty()) return Colour::None;
  constexpr std::array kColours{Colour::Teal, Colour::Ember, Colour::Gold};
  return kColours[static_cast<size_t>(line.phases.back())];
}

std::string phases_text(const Line& line) {
  std::vector<std::string_view> names;
  for (Phase phase : line.phases) names.push_back(name(phase));
  return fmt::format("{}", fmt::join(names, "+"));
}

std::string origin_of(NodeRef node) {
  return node && node->origin ? to_text(*node->origin) : std::string();
}

template <typename Number>
std::string mega(Number amount) {
  return fmt::format("{:.3f}", static_cast<double>(amount) * 1e-6);
}

// What each reason says of a value.
std::string_view meaning(UnfusedReason reason) {
  switch (reason) {
    case UnfusedReason::Reuse: return "several need it";
    case UnfusedReason::Limit: return "the device has no room for more in one kernel";
    case UnfusedReason::Reduce: return "a sum of sums would repeat the inner one";
    case UnfusedReason::Shape: return "others run over it in another order or shape";
    case UnfusedReason::Dtype: return "its bits are read as another dtype";
    case UnfusedReason::Size: return "too few rows would be left to share the work";
  }
  return "";
}

// A value has one line, however many kernels load it.
void write_unfused(const Schedule& schedule) {
  if (schedule.unfused.empty()) return;
  std::map<int, std::vector<int>> readers;  // of a buffer
  std::vector<const UnfusedEdge*> values;
  for (const UnfusedEdge& edge : schedule.unfused) {
    std::vector<int>& list = readers[edge.buffer];
    if (list.empty()) values.push_back(&edge);
    list.push_back(edge.consumer);
  }
  std::ranges::stable_sort(values, {}, &UnfusedEdge::producer);

  write("\nnot fused: stored by one kernel for others; fusing would cost so much more\n");
  std::map<UnfusedReason, size_t> reasons;
  for (const UnfusedEdge* edge : values) {
    ++reasons[edge->reason];
    const std::string edges =
        fmt::format("{:>3} > {}", edge->producer, fmt::join(readers[edge->buffer], ", "));
    write(fmt::format("{:<20} {:<7} {:<24} {:>10}  {}\n", edges, name(edge->reason),
                      edge->value ? type_text(edge->value) : std::string(),
                      fmt::format("{:.1f} us", edge->cost * 1e-3),
                      paint(Colour::Dim, origin_of(edge->value))));
  }
  for (const auto& [reason, count] : reasons)
    write(fmt::format("{:>5} {}: {}\n", count, name(reason), meaning(reason)));
}

void write_text(const models::ProgramRow& row, const KernelsOptions& options,
                const Listing& listing) {
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), row.description));
  write(fmt::format("{}: {} nodes in {} kernels, {} of them (*) with forward and backward nodes\n",
                    options.forward ? "forward" : "step", listing.nodes, listing.lines.size(),
                    listing.crossing));
  write(fmt::format("work: {} MFLOP, {} MB read, {} MB written\n", mega(listing.work.flops),
                    mega(listing.work.bytes_read), mega(listing.work.bytes_written)));
  const Memory& memory = listing.memory;
  write(
      fmt::format("memory: {} MB at most: {} MB of inputs, {} MB of results, {} MB for {} MB of "
                  "temporaries\n\n",
                  mega(memory.peak()), mega(memory.inputs), mega(memory.outputs),
                  mega(memory.arena), mega(memory.temporaries)));
  write(fmt::format("{:>3}  {:<31} {:<23} {:>5} {:>5} {:>10} {:>9} {:>9}\n", "", "kernel", "phases",
                    "nodes", "ops", "MFLOP", "MB read", "written"));
  for (size_t i = 0; i < listing.lines.size(); ++i) {
    const Line& line = listing.lines[i];
    write(paint(colour_of(line),
                fmt::format("{:>3}{} {:<31} {:<23} {:>5} {:>5} {:>10} {:>9} {:>9}", i,
                            line.crosses() ? '*' : ' ', line.name, phases_text(line), line.nodes,
                            line.work.operations, mega(line.work.flops), mega(line.work.bytes_read),
                            mega(line.work.bytes_written))) +
          "\n");
  }
  write_unfused(listing.schedule);
}

// ---- JSON

Json work_json(const WorkCount& work) {
  return Json::object()
      .set("ops", work.operations)
      .set("flops", work.flops)
      .set("bytes_read", work.bytes_read)
      .set("bytes_written", work.bytes_written);
}

Json memory_json(const Memory& memory) {
  return Json::object()
      .set("peak_bytes", memory.peak())
      .set("input_bytes", memory.inputs)
      .set("output_bytes", memory.outputs)
      .set("arena_bytes", memory.arena)
      .set("temporary_bytes", memory.temporaries);
}

void write_json(const models::ProgramRow& row, const KernelsOptions& options,
                const Listing& listing) {
  Json kernels = Json::array(), unfused = Json::array();
  for (size_t i = 0; i < listing.lines.size(); ++i) {
    const Line& line = listing.lines[i];
    Json phase_names = Json::array();
    for (Phase phase : line.phases) phase_names.add(name(phase));
    kernels.add(Json::object()
                    .set("number", i)
                    .set("name", line.name)
                    .set("phases", phase_names)
                    .set("crosses", line.crosses())
                    .set("nodes", line.nodes)
                    .set("work", work_json(line.work)));
  }
  for (const UnfusedEdge& edge : listing.schedule.unfused)
    unfused.add(Json::object()
                    .set("producer", edge.producer)
                    .set("consumer", edge.consumer)
                    .set("reason", name(edge.reason))
                    .set("cost_ns", edge.cost)
                    .set("value", edge.value ? Json(type_text(edge.value)) : Json())
                    .set("origin", origin_of(edge.value)));
  write(Json::object()
            .set("program", row.name)
            .set("scope", options.forward ? "forward" : "step")
            .set("device", options.device)
            .set("nodes", listing.nodes)
            .set("crossing", listing.crossing)
            .set("work", work_json(listing.work))
            .set("memory", memory_json(listing.memory))
            .set("kernels", kernels)
            .set("unfused", unfused)
            .text() +
        "\n");
}

}  // namespace

void kernels(const KernelsOptions& options) {
  const models::ProgramRow& row = program_named(options.program);
  const models::Program program = row.build();
  const Listing listing = list(program, options);
  options.json ? write_json(row, options, listing) : write_text(row, options, listing);
}

}  // namespace anneal::cli
