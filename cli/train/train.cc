// The training loop.
#include "cli/train/train.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include <anneal/device.h>
#include <anneal/error.h>
#include <anneal/random.h>

#include "base/os/prefetch.h"
#include "cli/busy.h"
#include "cli/chosen_device.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/train/checkpoint.h"
#include "cli/train/interrupt.h"
#include "cli/train/report.h"
#include "cli/train/task.h"
#include "cli/tune.h"

namespace anneal::cli {
namespace {

constexpr int64_t kSampled = 400;  // characters at the end of a run

Report::Form form_of(const TrainOptions& options) {
  if (options.json) return Report::Form::Json;
  return options.plain || isatty(fileno(stdout)) == 0 ? Report::Form::Lines : Report::Form::Bar;
}

int64_t count_parameters(Task& task) {
  int64_t count = 0;
  for (const nn::Parameter& parameter : task.model().parameters())
    count += parameter.tensor.size().value();
  return count;
}

[[noreturn]] void fail_not_finite(const Task& task, double loss, int64_t step, double lr) {
  const std::string where = task.first_non_finite();
  throw UserError(
      fmt::format("the loss is {} at step {}{}", loss, step,
                  where.empty() ? "" : ": the first tensor that is not finite is " + where),
      fmt::format("most often a smaller --lr helps (it is {}); parameters are as before the step, "
                  "and checkpoints as they were",
                  lr),
      {});
}

class Training {
 public:
  Training(const TrainOptions& options, const Settings& settings, Task& task, int64_t done)
      : options_(options),
        settings_(settings),
        task_(task),
        first_(done),
        done_(done),
        steps_(options.steps.value_or(settings.row->steps)),
        report_(form_of(options), settings.row->name, task.unit(), done, steps_,
                options.log_every.value_or(std::max<int64_t>(1, steps_ / 20))) {
    if (!options.save.empty()) check_save_path(options.save, task);
  }

  // Whatever ends it, what was learned is saved.
  int run() {
    const Interrupt interrupt;
    try {
      report_.begin(task_.data_text(), count_parameters(task_), settings_.changed);
      Prefetch<Batch> batches([this](int64_t step) { return task_.make_batch(step); }, done_,
                              steps_);
      while (done_ < steps_ && !Interrupt::requested()) step(batches);
      const bool interrupted = done_ < steps_;
      if (!interrupted || done_ > first_) save();
      finish(interrupted);
      return interrupted ? kInterrupted : kWorked;
    } catch (const OutputError& error) {
      if (done_ > first_ && done_ != saved_) save();
      if (Interrupt::requested()) return kInterrupted;  // of a terminal that was closed
      if (error.reader_gone()) return kReaderGone;
      throw;
    }
  }

 private:
  void finish(bool interrupted) {
    const int64_t skipped = task_.optimizer().skipped().item<int64_t>();
    report_.done({done_, loss_, interrupted ? std::nullopt : std::optional(task_.score()), skipped,
                  saved_ ? options_.save : "", interrupted ? "" : sample(), interrupted});
  }

  double learn(const Batch& batch) {
    if (done_ > first_) return task_.learn(batch);
    const Busy busy("compiling the training step");
    return task_.learn(batch);
  }

  void step(Prefetch<Batch>& batches) {
    check_reader();
    const auto start = std::chrono::steady_clock::now();
    const Batch batch = batches.next();
    const Counters before = counters();
    const double loss = learn(batch);
    const Counters work = counters() - before;
    if (!std::isfinite(loss)) fail_not_finite(task_, loss, done_ + 1, settings_.lr);
    loss_ = loss;
    ++done_;
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    report_.step({done_, loss, time.count(), batch.items, work});
    if (done_ == steps_) return;  // what the end does anyway
    if (options_.eval_every > 0 && done_ % options_.eval_every == 0)
      report_.score(done_, task_.score());
    if (options_.save_every > 0 && done_ % options_.save_every == 0) save();
  }

  void save() {
    if (options_.save.empty()) return;
    save_checkpoint(options_.save, task_, settings_, done_);
    saved_ = done_;
  }

  std::string sample() {
    std::string text;
    if (settings_.row->learns_text())
      task_.sample("\n", kSampled, 0.8, settings_.seed,
                   [&](std::string_view character) { text += character; });
    return text;
  }

  const TrainOptions& options_;
  const Settings& settings_;
  Task& task_;
  int64_t first_, done_, steps_;  // done before this run, by now, and in the end
  std::optional<int64_t> saved_;  // how many were done then
  std::optional<double> loss_;
  Report report_;
};

}  // namespace

int train(const TrainOptions& options) {
  const double budget = parse_budget(options.budget);
  const ChosenDevice device(options.run.device);
  if (options.tune) check_tunable(device.kernel_device());
  const OpenedRun run = open_run(options.run);
  // What runs once, to make the model, is not worth a search.
  std::optional<TuneWhileCompiling> tuning;
  if (options.tune) tuning.emplace(budget);
  return Training(options, run.settings, *run.task, run.step).run();
}

}  // namespace anneal::cli
