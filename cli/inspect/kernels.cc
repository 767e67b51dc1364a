// Shows the kernels of a program as a device would run them. Must not format what the library can:
// bodies, programs and machine code are its own text.
#include "cli/inspect/kernels.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/busy.h"
#include "cli/chosen_device.h"
#include "cli/failure.h"
#include "cli/inspect/kernel_plans.h"
#include "cli/inspect/kernel_times.h"
#include "cli/inspect/programs.h"
#include "cli/json.h"
#include "cli/output.h"
#include "codegen/target_kernels.h"
#include "ir/print.h"
#include "runtime/inspect/kernel_text.h"
#include "target/target.h"

namespace anneal::cli {
namespace {

// ---- whose kernels are shown, and in which form

// A device that is here, or a named target that need not be.
struct KernelsFor {
  std::optional<ChosenDevice> device;
  const Target* target = nullptr;
  Capabilities capabilities = {};

  std::string_view name() const { return device ? device->name() : target->name; }
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

void write_times(const KernelTimes& times) {
  const double all = std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0);
  write(fmt::format("time: {:.1f} us in kernels, each the least of {} {}\n", all * 1e6, times.runs,
                    times.runs == 1 ? "run" : "runs"));
}

void write_table(const KernelsOptions& options, const KernelListing& listing,
                 const KernelTimes& times) {
  write("\n" + table_head(options.time));
  for (size_t i = 0; i < listing.kernels.size(); ++i)
    if (is_wanted(options, i))
      write(paint(colour_of(listing.kernels[i]), table_line(listing, i, times.seconds)) + "\n");
}

bool is_wanted(const KernelsOptions& options, const UnfusedValue& value) {
  return options.kernel < 0 || value.edge->producer == options.kernel ||
         std::ranges::count(value.readers, options.kernel) > 0;
}

void write_unfused(const KernelsOptions& options, const Schedule& schedule) {
  std::vector<UnfusedValue> values = unfused_values(schedule);
  std::erase_if(values, [&](const UnfusedValue& value) { return !is_wanted(options, value); });
  if (values.empty()) return;
  write(fmt::format("\n{}", kUnfusedTitle));
  for (const UnfusedValue& value : values) {
    write(fmt::format("{}  {}\n", unfused_line(value),
                      paint(Colour::Dim, origin_text(value.edge->value))));
    if (value.edge->reason == UnfusedReason::Limit) write(limit_line(value.edge->limit));
  }
  write(reasons_text(values));
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

// What is recorded is of the device that is here.
PartPlans part_plans(const ListedPart& part, const KernelsFor& made) {
  return plans_of(*part.part, made.capabilities,
                  made.device ? made.device->kernel_device().tuned_plans() : nullptr);
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
  write(fmt::format("{}: {}", options.forward ? "forward" : "step", totals_text(listing)));
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
      .set("origin", origin_text(edge.value));
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
            .set("key", to_text(listing.key))
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
    return list_kernels(row.build(), options.forward, made.capabilities, made.name());
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
