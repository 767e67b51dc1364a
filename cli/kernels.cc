// Shows the kernels of a program as a device would run them. Must not format what the library can:
// bodies, programs and machine code are its own text.
#include "kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "busy.h"
#include "chosen_device.h"
#include "codegen/llvm/compile.h"
#include "failure.h"
#include "ir/print.h"
#include "json.h"
#include "kernel_listing.h"
#include "kernel_times.h"
#include "output.h"
#include "programs.h"
#include "runtime/webgpu/webgpu_device.h"

namespace anneal::cli {
namespace {

template <typename Number>
std::string mega(Number amount) {
  return fmt::format("{:.3f}", static_cast<double>(amount) * 1e-6);
}

std::string origin_of(NodeRef node) {
  return node && node->origin ? to_text(*node->origin) : std::string();
}

// ---- the forms a kernel can be shown in

std::string ir_source(const ListedPart& part, const Schedule&, const Device&) {
  return to_text(part.part->body);
}
std::string program_source(const ListedPart& part, const Schedule&, const Device&) {
  return to_text(part.program);
}
std::string llvm_source(const ListedPart& part, const Schedule&, const Device&) {
  const Program* program = &part.program;
  return llvm_ir({&program, 1}, host_target());
}
std::string assembly_source(const ListedPart& part, const Schedule&, const Device&) {
  const Program* program = &part.program;
  return assembly({&program, 1}, host_target());
}
std::string wgsl_source(const ListedPart& part, const Schedule& schedule, const Device& device) {
  return shader_text(device, schedule, *part.part);
}

// Lanes are vectors of one thread, or threads of a group.
enum class Lanes : uint8_t { Either, Vectors, Groups };

struct SourceForm {
  std::string_view name;
  std::string (*text)(const ListedPart&, const Schedule&, const Device&);
  Lanes lanes = Lanes::Either;
};
constexpr std::array kForms{
    SourceForm{"ir", ir_source},
    SourceForm{"program", program_source},
    SourceForm{"llvm", llvm_source, Lanes::Vectors},
    SourceForm{"asm", assembly_source, Lanes::Vectors},
    SourceForm{"wgsl", wgsl_source, Lanes::Groups},
};

// Null when none is asked for.
const SourceForm* wanted_form(const KernelsOptions& options) {
  if (options.source.empty()) return nullptr;
  const auto form = std::ranges::find(kForms, options.source, &SourceForm::name);
  if (form == kForms.end()) fail_unknown("form of kernels", options.source, source_forms());
  return &*form;
}

void check_form(const SourceForm* form, const ChosenDevice& device) {
  if (!form || form->lanes == Lanes::Either) return;
  const bool groups = device.capabilities().group_threads > 0;
  if (groups == (form->lanes == Lanes::Groups)) return;
  throw UsageError(fmt::format("kernels of device \"{}\" have no {}", device.name(), form->name),
                   groups ? "ask for --source wgsl, or add --device cpu"
                          : "ask for --source llvm or asm, or add --device webgpu");
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
                   const SourceForm& form, const Device& device) {
  for (size_t i = 0; i < listing.kernels.size(); ++i) {
    if (!is_wanted(options, i)) continue;
    const ListedKernel& kernel = listing.kernels[i];
    for (size_t j = 0; j < kernel.parts.size(); ++j) {
      const ListedPart& part = kernel.parts[j];
      write(paint(Colour::Dim,
                  fmt::format("// kernel {}, part {} of {}, phase {}, {} cells: {}", i, j + 1,
                              kernel.parts.size(), part.phase, part.cells, kernel.name)) +
            "\n");
      write(fmt::format("{}\n", form.text(part, listing.schedule, device)));
    }
  }
}

void write_text(const models::ProgramRow& row, const KernelsOptions& options,
                const ChosenDevice& device, const KernelListing& listing,
                const KernelTimes& times) {
  if (const SourceForm* form = wanted_form(options))
    return write_sources(options, listing, *form, device.kernel_device());
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), row.description));
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

Json kernel_json(const ListedKernel& kernel, size_t number, const SourceForm* form,
                 const Schedule& schedule, const Device& device) {
  Json phase_names = Json::array(), parts = Json::array();
  for (Phase phase : kernel.step_phases) phase_names.add(name(phase));
  for (const ListedPart& part : kernel.parts) {
    Json json = Json::object()
                    .set("phase", part.phase)
                    .set("cells", part.cells)
                    .set("instructions", part.program.code.size());
    if (form) json.set("source", form->text(part, schedule, device));
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
                const ChosenDevice& device, const KernelListing& listing,
                const KernelTimes& times) {
  const SourceForm* form = wanted_form(options);
  Json kernels = Json::array(), unfused = Json::array();
  for (size_t i = 0; i < listing.kernels.size(); ++i)
    if (is_wanted(options, i)) {
      Json kernel =
          kernel_json(listing.kernels[i], i, form, listing.schedule, device.kernel_device());
      if (options.time) kernel.set("time_ns", times.seconds[i] * 1e9);
      kernels.add(kernel);
    }
  for (const UnfusedEdge& edge : listing.schedule.unfused)
    if (is_wanted(options, edge)) unfused.add(edge_json(edge));
  write(Json::object()
            .set("program", row.name)
            .set("scope", options.forward ? "forward" : "step")
            .set("device", device.name())
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
  for (const SourceForm& form : kForms) names.push_back(form.name);
  return names;
}

void kernels(const KernelsOptions& options) {
  const models::ProgramRow& row = program_named(options.program);
  const SourceForm* form = wanted_form(options);  // before the work
  const ChosenDevice device(options.device);
  check_form(form, device);
  const KernelListing listing = [&] {
    const Busy busy(fmt::format("compiling {}", row.name));
    return list_kernels(row.build(), options.forward, device.kernel_device());
  }();
  const GraphScope scope(*listing.schedule.graph);
  if (options.kernel >= static_cast<int>(listing.kernels.size()))
    throw UsageError(fmt::format("{} has no kernel {}", row.name, options.kernel),
                     fmt::format("they are numbered from 0 to {}", listing.kernels.size() - 1));
  const KernelTimes times =
      options.time ? time_kernels(listing.schedule, device.kernel_device()) : KernelTimes();
  options.json ? write_json(row, options, device, listing, times)
               : write_text(row, options, device, listing, times);
}

}  // namespace anneal::cli
