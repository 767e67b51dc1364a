// Shows the kernels of a program as a device would run them. Must not format what the library can:
// bodies, programs and machine code are its own text.
#include "cli/inspect/kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "cli/busy.h"
#include "cli/chosen_device.h"
#include "cli/failure.h"
#include "cli/inspect/kernel_listing.h"
#include "cli/inspect/kernel_plans.h"
#include "cli/inspect/kernel_times.h"
#include "cli/inspect/programs.h"
#include "cli/json.h"
#include "cli/output.h"
#include "codegen/target_kernels.h"
#include "ir/print.h"
#include "target/target.h"

namespace anneal::cli {
namespace {

template <typename Number>
std::string mega(Number amount) {
  return fmt::format("{:.3f}", static_cast<double>(amount) * 1e-6);
}

std::string origin_of(NodeRef node) {
  return node && node->origin ? to_text(*node->origin) : std::string();
}

// ---- whose kernels are shown, and in which form

// A device that is here, or a named target that need not be.
struct KernelsFor {
  std::optional<ChosenDevice> device;
  const Target* target = nullptr;
  Capabilities capabilities = {};

  std::string text() const {
    return device ? fmt::format("device \"{}\"", device->name())
                  : fmt::format("target \"{}\"", target->name);
  }
};

const Target& target_named(const std::string& name) {
  if (const Target* target = find_target(name)) return *target;
  std::vector<std::string_view> names;
  for (const Target& target : named_targets()) names.emplace_back(target.name);
  fail_unknown("target", name, names);
}

KernelsFor kernels_for(const KernelsOptions& options) {
  KernelsFor made;
  if (options.target.empty()) {
    made.device.emplace(options.device);
    made.target = &made.device->kernel_device().target();
    made.capabilities = made.device->capabilities();
  } else {
    made.target = &target_named(options.target);
    made.capabilities = capabilities_of(*made.target, options.wishes);
  }
  return made;
}

// Null when none is asked for.
const SourceForm* wanted_form(const KernelsOptions& options) {
  if (options.source.empty()) return nullptr;
  const auto form = std::ranges::find(all_source_forms(), options.source, &SourceForm::name);
  if (form == all_source_forms().end())
    fail_unknown("form of kernels", options.source, source_forms());
  return &*form;
}

void check_form(const SourceForm* form, const KernelsFor& made) {
  const std::vector<std::string_view> known = source_forms(*made.target);
  if (!form || std::ranges::count(known, form->name) > 0) return;
  const auto other = std::ranges::find(named_targets(), form->language, &Target::language);
  throw UsageError(fmt::format("kernels of {} have no {}", made.text(), form->name),
                   fmt::format("they have {}; {} has {}, for one: add --target {}",
                               fmt::join(known, ", "), other->name, form->name, other->name));
}

std::string source_text(const SourceForm& form, const ListedPart& part, const Schedule& schedule,
                        const KernelsFor& made) {
  return form.text(*made.target, made.capabilities, schedule, *part.part, part.program);
}

bool is_wanted(const KernelsOptions& options, size_t kernel) {
  return options.kernel < 0 || static_cast<size_t>(options.kernel) == kernel;
}

bool is_wanted(const KernelsOptions& options, const UnfusedEdge& edge) {
  return options.kernel < 0 || edge.producer == options.kernel || edge.consumer == options.kernel;
}

// ---- text

Colour colour_of(const ListedKernel& kernel) {
  if (kernel.crosses()) return Colour::Bold;
  if (kernel.step_phases.empty()) return Colour::None;
  constexpr std::array kColours{Colour::Teal, Colour::Ember, Colour::Gold};
  return kColours[static_cast<size_t>(kernel.step_phases.back())];
}

std::string phases_text(const ListedKernel& kernel) {
  std::vector<std::string_view> names;
  for (Phase phase : kernel.step_phases) names.push_back(name(phase));
  return fmt::format("{}", fmt::join(names, "+"));
}

void write_totals(const KernelsOptions& options, const KernelListing& listing) {
  const MemoryCount& memory = listing.memory;
  write(fmt::format("{}: {} nodes in {} kernels, {} of them (*) with forward and backward nodes\n",
                    options.forward ? "forward" : "step", listing.nodes, listing.kernels.size(),
                    listing.crossing()));
  write(fmt::format("work: {} MFLOP, {} MB read, {} MB written\n", mega(listing.work.flops),
                    mega(listing.work.bytes_read), mega(listing.work.bytes_written)));
  write(
      fmt::format("memory: {} MB at most: {} MB of inputs, {} MB of results, {} MB of {} MB of "
                  "temporaries at a time\n\n",
                  mega(memory.peak()), mega(memory.inputs), mega(memory.outputs),
                  mega(memory.arena), mega(memory.temporaries)));
}

std::string micro(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }

void write_times(const KernelTimes& times) {
  const double all = std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0);
  write(fmt::format("time: {} us in kernels, each the least of {} {}\n\n", micro(all), times.runs,
                    times.runs == 1 ? "run" : "runs"));
}

void write_table(const KernelsOptions& options, const KernelListing& listing,
                 const KernelTimes& times) {
  write(fmt::format("{:>3}  {:<31} {:<23} {:>5} {:>5} {:>7} {:>9} {:>8} {:>8}{}\n", "", "kernel",
                    "phases", "nodes", "ops", "cells", "MFLOP", "MB read", "written",
                    options.time ? fmt::format(" {:>9}", "us") : ""));
  for (size_t i = 0; i < listing.kernels.size(); ++i) {
    if (!is_wanted(options, i)) continue;
    const ListedKernel& kernel = listing.kernels[i];
    write(paint(colour_of(kernel),
                fmt::format("{:>3}{} {:<31} {:<23} {:>5} {:>5} {:>7} {:>9} {:>8} {:>8}{}", i,
                            kernel.crosses() ? '*' : ' ', kernel.name, phases_text(kernel),
                            kernel.nodes, kernel.work.operations, kernel.cells(),
                            mega(kernel.work.flops), mega(kernel.work.bytes_read),
                            mega(kernel.work.bytes_written),
                            options.time ? fmt::format(" {:>9}", micro(times.seconds[i])) : "")) +
          "\n");
  }
}

// What each reason says of a value.
std::string_view meaning(UnfusedReason reason) {
  switch (reason) {
    case UnfusedReason::Reuse: return "to compute it again costs more than to store it";
    case UnfusedReason::Dtype: return "the same, because its dtype is narrow";
    case UnfusedReason::Uses: return "too many would compute it for themselves";
    case UnfusedReason::Reduce: return "a reduction would be made again";
    case UnfusedReason::Product: return "groups of threads would make an operand again and again";
    case UnfusedReason::Shape: return "others run over it in another order or shape";
    case UnfusedReason::Size: return "too few rows would be left to share the work";
    case UnfusedReason::Length: return "the kernel would take too long to compile";
    case UnfusedReason::Order: return "something else has to be computed in between";
    case UnfusedReason::Limit: return "the device has no room for more in one kernel";
    case UnfusedReason::Disabled: return "values are not computed where they are used";
  }
  return "";
}

std::string limit_line(const BufferLimit& limit) {
  return fmt::format("{:<20} one kernel would bind {} buffers, the device allows {}\n", "",
                     limit.needed, limit.allowed);
}

// Where costs decided, both of them.
std::string cost_text(const UnfusedCost& cost) {
  return cost.decided() ? fmt::format("{} us again, {} us stored", micro(cost.again * 1e-9),
                                      micro(cost.stored * 1e-9))
                        : "";
}

// A value has one line, however many kernels load it.
void write_unfused(const KernelsOptions& options, const Schedule& schedule) {
  std::map<int, std::vector<int>> readers;  // of a buffer
  std::vector<const UnfusedEdge*> values;
  for (const UnfusedEdge& edge : schedule.unfused) {
    if (!is_wanted(options, edge)) continue;
    std::vector<int>& list = readers[edge.buffer];
    if (list.empty()) values.push_back(&edge);
    list.push_back(edge.consumer);
  }
  if (values.empty()) return;
  std::ranges::stable_sort(values, {}, &UnfusedEdge::producer);

  write(
      "\nnot fused: stored by one kernel for others, what decided it, and costs where they did\n");
  std::map<UnfusedReason, size_t> reasons;
  for (const UnfusedEdge* edge : values) {
    ++reasons[edge->reason];
    const std::string edges =
        fmt::format("{:>3} > {}", edge->producer, fmt::join(readers[edge->buffer], ", "));
    write(fmt::format("{:<20} {:<8} {:<24} {:<33}  {}\n", edges, name(edge->reason),
                      edge->value ? type_text(edge->value) : std::string(), cost_text(edge->cost),
                      paint(Colour::Dim, origin_of(edge->value))));
    if (edge->reason == UnfusedReason::Limit) write(limit_line(edge->limit));
  }
  for (const auto& [reason, count] : reasons)
    write(fmt::format("{:>5} {}: {}\n", count, name(reason), meaning(reason)));
}

void write_sources(const KernelsOptions& options, const KernelListing& listing,
                   const SourceForm& form, const KernelsFor& made) {
  for (size_t i = 0; i < listing.kernels.size(); ++i) {
    if (!is_wanted(options, i)) continue;
    const ListedKernel& kernel = listing.kernels[i];
    for (size_t j = 0; j < kernel.parts.size(); ++j) {
      const ListedPart& part = kernel.parts[j];
      write(paint(Colour::Dim,
                  fmt::format("// kernel {}, part {} of {}, phase {}, {} cells: {}", i, j + 1,
                              kernel.parts.size(), part.phase, part.cells, kernel.name)) +
            "\n");
      write(fmt::format("{}\n", source_text(form, part, listing.schedule, made)));
    }
  }
}

// What is recorded is of the CPU that is here.
PartPlans part_plans(const ListedPart& part, const KernelsFor& made) {
  return plans_of(*part.part, made.capabilities, made.device && made.device->name() == "cpu");
}

void write_plans(const KernelsOptions& options, const KernelListing& listing,
                 const KernelsFor& made) {
  for (size_t i = 0; i < listing.kernels.size(); ++i) {
    if (!is_wanted(options, i)) continue;
    const ListedKernel& kernel = listing.kernels[i];
    for (size_t j = 0; j < kernel.parts.size(); ++j) {
      write(paint(Colour::Bold,
                  fmt::format("kernel {}, part {} of {}, {} cells: {}", i, j + 1,
                              kernel.parts.size(), kernel.parts[j].cells, kernel.name)) +
            "\n");
      write(plans_text(part_plans(kernel.parts[j], made)) + "\n");
    }
  }
}

void write_text(const models::ProgramRow& row, const KernelsOptions& options,
                const KernelsFor& made, const KernelListing& listing, const KernelTimes& times) {
  if (const SourceForm* form = wanted_form(options))
    return write_sources(options, listing, *form, made);
  if (options.plan) return write_plans(options, listing, made);
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), row.description));
  if (!made.device)
    write(fmt::format("target: {}, {}\n", made.target->name, made.target->description));
  write_totals(options, listing);
  if (options.time) write_times(times);
  write_table(options, listing, times);
  write_unfused(options, listing.schedule);
}

// ---- JSON

Json work_json(const WorkCount& work) {
  return Json::object()
      .set("ops", work.operations)
      .set("flops", work.flops)
      .set("bytes_read", work.bytes_read)
      .set("bytes_written", work.bytes_written);
}

Json memory_json(const MemoryCount& memory) {
  return Json::object()
      .set("peak_bytes", memory.peak())
      .set("input_bytes", memory.inputs)
      .set("output_bytes", memory.outputs)
      .set("arena_bytes", memory.arena)
      .set("temporary_bytes", memory.temporaries);
}

// What temporaries may take; null: as much as there is.
Json budget_json(const Capabilities& capabilities) {
  return capabilities.arena_bytes < INT64_MAX ? Json(capabilities.arena_bytes) : Json();
}

Json kernel_json(const ListedKernel& kernel, size_t number, const SourceForm* form,
                 const Schedule& schedule, const KernelsFor& made) {
  Json phase_names = Json::array(), parts = Json::array();
  for (Phase phase : kernel.step_phases) phase_names.add(name(phase));
  for (const ListedPart& part : kernel.parts) {
    Json json = Json::object()
                    .set("phase", part.phase)
                    .set("cells", part.cells)
                    .set("instructions", part.program.code.size());
    if (form) json.set("source", source_text(*form, part, schedule, made));
    parts.add(json);
  }
  return Json::object()
      .set("number", number)
      .set("name", kernel.name)
      .set("phases", phase_names)
      .set("crosses", kernel.crosses())
      .set("nodes", kernel.nodes)
      .set("cells", kernel.cells())
      .set("work", work_json(kernel.work))
      .set("parts", parts);
}

Json edge_json(const UnfusedEdge& edge) {
  Json json = Json::object();
  json.set("producer", edge.producer)
      .set("consumer", edge.consumer)
      .set("buffer", edge.buffer)
      .set("reason", name(edge.reason))
      .set("again_ns", edge.cost.decided() ? Json(edge.cost.again) : Json())
      .set("stored_ns", edge.cost.decided() ? Json(edge.cost.stored) : Json())
      .set("value", edge.value ? Json(type_text(edge.value)) : Json())
      .set("origin", origin_of(edge.value));
  if (edge.reason == UnfusedReason::Limit)
    json.set("limit", Json::object()
                          .set("name", "buffers a kernel")
                          .set("needed", edge.limit.needed)
                          .set("allowed", edge.limit.allowed));
  return json;
}

void write_json(const models::ProgramRow& row, const KernelsOptions& options,
                const KernelsFor& made, const KernelListing& listing, const KernelTimes& times) {
  const SourceForm* form = wanted_form(options);
  Json kernels = Json::array(), unfused = Json::array();
  for (size_t i = 0; i < listing.kernels.size(); ++i)
    if (is_wanted(options, i)) {
      Json kernel = kernel_json(listing.kernels[i], i, form, listing.schedule, made);
      if (options.time) kernel.set("time_ns", times.seconds[i] * 1e9);
      if (options.plan) {
        Json plans = Json::array();
        for (const ListedPart& part : listing.kernels[i].parts)
          plans.add(plans_json(part_plans(part, made)));
        kernel.set("plans", plans);
      }
      kernels.add(kernel);
    }
  for (const UnfusedEdge& edge : listing.schedule.unfused)
    if (is_wanted(options, edge)) unfused.add(edge_json(edge));
  write(Json::object()
            .set("program", row.name)
            .set("scope", options.forward ? "forward" : "step")
            .set("device", made.device ? Json(made.device->name()) : Json())
            .set("target", made.target->name)
            .set("memory_budget_bytes", budget_json(made.capabilities))
            .set("nodes", listing.nodes)
            .set("crossing", listing.crossing())
            .set("work", work_json(listing.work))
            .set("memory", memory_json(listing.memory))
            .set("kernels", kernels)
            .set("unfused", unfused)
            .text() +
        "\n");
}

}  // namespace

std::vector<std::string_view> source_forms() {
  std::vector<std::string_view> names;
  for (const SourceForm& form : all_source_forms()) names.push_back(form.name);
  return names;
}

void kernels(const KernelsOptions& options) {
  const models::ProgramRow& row = program_named(options.program);
  const SourceForm* form = wanted_form(options);  // before the work
  const KernelsFor made = kernels_for(options);
  check_form(form, made);
  const KernelListing listing = [&] {
    const Busy busy(fmt::format("compiling {}", row.name));
    return list_kernels(row.build(), options.forward, made.capabilities);
  }();
  const GraphScope scope(*listing.schedule.graph);
  if (options.kernel >= static_cast<int>(listing.kernels.size()))
    throw UsageError(fmt::format("{} has no kernel {}", row.name, options.kernel),
                     fmt::format("they are numbered from 0 to {}", listing.kernels.size() - 1));
  const KernelTimes times =
      options.time ? time_kernels(listing.schedule, made.device->kernel_device()) : KernelTimes();
  options.json ? write_json(row, options, made, listing, times)
               : write_text(row, options, made, listing, times);
}

}  // namespace anneal::cli
