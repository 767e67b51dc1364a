// Explains a program by what the compiler's passes do to it, and by the rules that fire in them:
// those of a compilation for the device at hand, of the very step that `anneal train` runs.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/busy.h"
#include "cli/chosen_device.h"
#include "cli/inspect/explain.h"
#include "cli/inspect/explain_text.h"
#include "cli/inspect/programs.h"
#include "cli/output.h"
#include "runtime/inspect/kernel_listing.h"

namespace anneal::cli {
namespace {

Json size_json(const PassTrace::Row& row, const StateSize& size) {
  Json json = Json::object().set("nodes", size.nodes);
  if (!row.parts.empty()) json.set(row.parts, size.parts);
  return json;
}

void write_program_json(const models::ProgramRow& row, const KernelListing& listing,
                        const PassTrace& trace, const ExplainOptions& options) {
  Json events = Json::array(), left_out = Json::array(), passes = Json::array();
  for (const std::string& name : options.disabled) left_out.add(name);
  for (const PassTrace::Row& pass : trace.rows()) {
    passes.add(Json::object()
                   .set("stage", pass.stage)
                   .set("pass", pass.pass)
                   .set("runs", pass.runs)
                   .set("changes", pass.changes)
                   .set("seconds", pass.seconds)
                   .set("before", size_json(pass, pass.before))
                   .set("after", size_json(pass, pass.after))
                   .set("hits", hits_json(pass.rules.hits())));
    for (const RewriteLog::Event& event : pass.rules.events())
      events.add(Json::object()
                     .set("pass", pass.pass)
                     .set("set", event.set)
                     .set("rule", event.rule)
                     .set("origin", event.origin)
                     .set("before", event.before)
                     .set("after", event.after));
  }
  write(Json::object()
            .set("program", row.name)
            .set("key", to_text(listing.key))
            .set("nodes_before", listing.nodes_before)
            .set("nodes_after", listing.nodes)
            .set("kernels", listing.kernels.size())
            .set("disabled", left_out)
            .set("hits", hits_json(trace.hits()))
            .set("passes", passes)
            .set("events", events)
            .text() +
        "\n");
}

void write_program(const models::ProgramRow& row, const KernelListing& listing,
                   const PassTrace& trace, const ExplainOptions& options) {
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), row.description));
  write(fmt::format("compiling the step: {} nodes before, {} after the rules, {} kernels\n",
                    listing.nodes_before, listing.nodes, listing.kernels.size()));
  if (!options.disabled.empty())
    write(fmt::format("disabled: {}\n", fmt::join(options.disabled, ", ")));

  write("\npasses, and the rules that fired in them\n" + pass_table_head());
  for (const PassTrace::Row& pass : trace.rows()) {
    write(pass_line(pass));
    for (const RewriteLog::Hit& hit : pass.rules.hits())
      write(paint(Colour::Dim, rule_line(hit)) + "\n");
  }
  write(summary_line(trace));

  for (const PassTrace::Row& pass : trace.rows())
    for (const RewriteLog::Event& event : pass.rules.events()) {
      write(fmt::format("\n{}, {}: {}/{}{}\n", pass.stage, pass.pass, event.set, event.rule,
                        event.origin.empty() ? "" : paint(Colour::Dim, "  " + event.origin)));
      write(indented(nearest_lines(event.before), paint(Colour::Ember, "  - ")));
      write(indented(nearest_lines(event.after), paint(Colour::Teal, "  + ")));
    }
}

}  // namespace

void explain_program(const models::ProgramRow& row, const ExplainOptions& options) {
  const models::Program program = build(row);
  const ChosenDevice device("");
  const PassTrace trace(options.events);
  const KernelListing listing = [&] {
    const Busy busy(fmt::format("compiling {}", row.name));
    return list_kernels(program, false, device.capabilities(), device.name());
  }();
  options.json ? write_program_json(row, listing, trace, options)
               : write_program(row, listing, trace, options);
}

}  // namespace anneal::cli
