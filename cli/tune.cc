#include "cli/tune.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include <anneal/device.h>

#include "cli/busy.h"
#include "cli/chosen_device.h"
#include "cli/failure.h"
#include "cli/inspect/programs.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/train/interrupt.h"
#include "runtime/disk/kernel_folder.h"
#include "runtime/inspect/kernel_listing.h"
#include "tune/tune.h"

namespace anneal::cli {
namespace {

constexpr double kLongestBudget = 24 * 3600;

std::string progress_text(const TuneProgress& progress) {
  return fmt::format(
      "kernel {} of {}, {} plans tried, the best {:.2f} times as fast, {:.0f} s left",
      progress.kernel, progress.kernels, progress.tried, progress.speedup, progress.seconds_left);
}

bool show_progress(const TuneProgress& progress) {
  Busy::set_detail(progress_text(progress));
  return true;
}

// A training run ends in its own way.
bool show_until_interrupted(const TuneProgress& progress) {
  return show_progress(progress) && !Interrupt::requested();
}

std::string micro(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }

std::string kernels_text(int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "kernel" : "kernels");
}

// What a person wants to know first.
std::string totals_text(const TuneReport& report) {
  const int64_t searched = report.count(TuneOutcome::Improved) + report.count(TuneOutcome::Kept) +
                           report.count(TuneOutcome::Undone);
  std::string text =
      fmt::format("{} searched, {} plans tried in {:.1f} s: {} faster now", kernels_text(searched),
                  report.tried(), report.seconds, report.count(TuneOutcome::Improved));
  if (const int64_t known = report.count(TuneOutcome::Known); known > 0)
    text += fmt::format("; {} known from before", kernels_text(known));
  if (const int64_t left = report.count(TuneOutcome::Left); left > 0)
    text += fmt::format("; {} left, for which a larger --budget or another run is needed",
                        kernels_text(left));
  if (report.program_after > 0 && report.count(TuneOutcome::Improved) > 0)
    text += fmt::format("\nkernels of the program: {} us before, {} us now",
                        micro(report.program_before), micro(report.program_after));
  return text;
}

std::string_view meaning(TuneOutcome outcome) {
  switch (outcome) {
    case TuneOutcome::Known: return "from before";
    case TuneOutcome::Improved: return "faster";
    case TuneOutcome::Kept: return "the planner's own does best";
    case TuneOutcome::Undone: return "faster by itself, but not in the program: as it was";
    case TuneOutcome::Left: return "no time was left";
    case TuneOutcome::Unfit: return "cannot be tried by itself";
  }
  return "";
}

void write_text(const models::ProgramRow& row, const KernelListing& listing,
                const TuneReport& report) {
  write(fmt::format("{}: {}\n", paint(Colour::Bold, row.name), totals_text(report)));
  if (report.kernels.empty()) return write("no kernel has plans to choose from\n");
  write(fmt::format("\n{:>3}  {:<31} {:>5} {:>9} {:>9} {:>6} {:>6}  {}\n", "", "kernel", "times",
                    "us before", "us now", "tried", "wrong", "outcome"));
  for (const TunedKernel& each : report.kernels) {
    const std::string why = each.why.empty() ? "" : fmt::format(" ({})", each.why);
    write(fmt::format("{:>3}  {:<31} {:>5} {:>9} {:>9} {:>6} {:>6}  {}{}\n", each.kernel,
                      listing.kernels[static_cast<size_t>(each.kernel)].name, each.count,
                      micro(each.planner_seconds), micro(each.seconds), each.tried, each.wrong,
                      meaning(each.outcome), why));
    write(paint(Colour::Dim, fmt::format("     {}", each.plan)) + "\n");
  }
}

void write_json(const models::ProgramRow& row, const TuneReport& report) {
  Json kernels = Json::array();
  for (const TunedKernel& each : report.kernels)
    kernels.add(Json::object()
                    .set("kernel", each.kernel)
                    .set("times", each.count)
                    .set("outcome", name(each.outcome))
                    .set("before_ns", each.planner_seconds * 1e9)
                    .set("now_ns", each.seconds * 1e9)
                    .set("tried", each.tried)
                    .set("wrong", each.wrong)
                    .set("plan", each.plan)
                    .set("why", each.why));
  write(Json::object()
            .set("program", row.name)
            .set("seconds", report.seconds)
            .set("tried", report.tried())
            .set("improved", report.count(TuneOutcome::Improved))
            .set("known", report.count(TuneOutcome::Known))
            .set("left", report.count(TuneOutcome::Left))
            .set("program_before_ns", report.program_before * 1e9)
            .set("program_now_ns", report.program_after * 1e9)
            .set("kernels", kernels)
            .text() +
        "\n");
}

}  // namespace

void check_tunable(Device& device) {
  if (!device.tuned_plans())
    throw UsageError(fmt::format("the device \"{}\" takes no other plans", device.name()),
                     "add --device cpu");
}

double parse_budget(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  if (unit == "m") value *= 60;
  const bool known = unit.empty() || unit == "s" || unit == "m";
  if (error != std::errc() || !known || !(value > 0) || value > kLongestBudget)
    throw UsageError(fmt::format("--budget is '{}', which is no time to search in", text),
                     "write 30s, or 2m; at most a day");
  return value;
}

void tune(const TuneCommandOptions& options) {
  const models::ProgramRow& row = program_named(options.program);
  const double seconds = parse_budget(options.budget);
  if (options.threads > 0) set_threads(options.threads);
  const ChosenDevice chosen(options.device);
  Device& device = chosen.kernel_device();
  check_tunable(device);
  if (default_cache_directory().empty())
    throw UserError("what is found has no place: nothing is kept on disk",
                    "unset ANNEAL_CACHE, or name a folder in ANNEAL_CACHE_DIR", {});
  const Busy busy(fmt::format("tuning {}", row.name));
  const KernelListing listing =
      list_kernels(row.build(), options.forward, chosen.capabilities(), chosen.name());
  const TuneReport report =
      anneal::tune(listing.schedule, device, {.seconds = seconds, .progress = show_progress});
  options.json ? write_json(row, report) : write_text(row, listing, report);
}

TuneWhileCompiling::TuneWhileCompiling(double seconds) {
  search_plans([left = seconds](const Schedule& schedule, Device& on) mutable {
    if (left <= 0) return;
    const TuneReport report =
        anneal::tune(schedule, on, {.seconds = left, .progress = show_until_interrupted});
    if (report.kernels.empty()) return;
    left -= report.seconds;
    Busy::set_detail("");
    fmt::print(stderr, "tuned: {}\n", totals_text(report));
  });
}

TuneWhileCompiling::~TuneWhileCompiling() { search_plans({}); }

}  // namespace anneal::cli
