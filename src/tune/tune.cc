#include "tune/tune.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "ir/graph.h"
#include "runtime/device/kernel_bench.h"
#include "tune/kernel_trial.h"
#include "tune/schedule_memory.h"

namespace anneal {
namespace {

using Clock = std::chrono::steady_clock;

// Of the budget: what comparing whole programs may take at the end.
constexpr double kForProgram = 0.2;
constexpr int64_t kMostCandidates = 48;    // of a kernel
constexpr int64_t kFewestCandidates = 4;   // of a search that found none, but could not end
constexpr double kQuick = 0.25;            // of the time left: what some candidates may take
constexpr double kWorthSearching = 0.005;  // of what the program is expected to take
constexpr double kLeastOfKernel = 0.3;     // seconds that are worth beginning with one
constexpr int64_t kMostTrialBytes = int64_t{2} << 30;
// A candidate whose first run takes so much longer than the best is not measured further.
constexpr double kHopeless = 1.3;
// What is admitted takes at most this part of the planner's own time, and is faster in so many of
// the rounds in which both take turns.
constexpr double kWorthIt = 0.97;
constexpr int kRounds = 9, kFasterRounds = 7;
constexpr int kFewestProgramRounds = 3, kMostProgramRounds = 25;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  double left() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }

 private:
  Clock::time_point end_;
};

// What a search has found so far, and what was known before: recorded when it has done better
// within the program, too, so that a search which ends early leaves nothing that has not.
class FoundPlans : public TunedPlans {
 public:
  explicit FoundPlans(TunedPlans& known) : known_(known) {}
  std::optional<PlanRecord> find(const KernelBody& body) override {
    const auto found = found_.find(to_text(body));
    return found == found_.end() ? known_.find(body) : found->second;
  }
  void keep(const KernelBody& body, PlanRecord record) override {
    found_[to_text(body)] = std::move(record);
  }

 private:
  TunedPlans& known_;
  std::map<std::string, PlanRecord> found_;  // by the text of the body
};

// A kernel that has candidates.
struct Task {
  const KernelBody* body;
  std::vector<int> kernels;  // of the schedule, that it is in
  std::vector<PlanChoice> choices;
  double expected = 0;  // of all its runs
  TunedKernel result;
};

class Tuner {
 public:
  Tuner(const Schedule& schedule, Device& device, const TuneOptions& options)
      : schedule_(schedule),
        device_(device),
        options_(options),
        records_(options.records ? *options.records : *device.tuned_plans()),
        found_(records_),
        bench_(device.kernel_bench()),
        all_(options.seconds),
        search_(options.seconds * (1 - kForProgram)) {}

  TuneReport run() {
    GraphScope scope(*schedule_.graph);
    find_tasks();
    size_t next = 0;
    for (Task& task : tasks_) next += task.result.outcome == TuneOutcome::Left ? 1 : 0;
    progress_.kernels = next;
    for (Task& task : tasks_)
      if (task.result.outcome == TuneOutcome::Left) search(task);
    compare_programs();
    TuneReport report;
    for (Task& task : tasks_) report.kernels.push_back(std::move(task.result));
    report.seconds = options_.seconds - all_.left();
    report.program_before = before_;
    report.program_after = after_;
    return report;
  }

 private:
  LowerOptions lower_options(std::string plan = {}) const {
    LowerOptions options{.capabilities = device_.capabilities()};
    options.plan = std::move(plan);
    return options;
  }

  // ---- what there is to search for

  void find_tasks() {
    bodies_ = bench_->bodies_of(schedule_);
    std::vector<Task> all;
    for (const KernelBody* body : bodies_.bodies) all.push_back({body, {}, {}, 0, {}});
    size_t part = 0;
    for (size_t kernel = 0; kernel < schedule_.kernels.size(); ++kernel)
      for (const KernelPhase& phase : schedule_.kernels[kernel].phases)
        for (size_t i = 0; i < phase.size(); ++i) {
          Task& task = all[static_cast<size_t>(bodies_.of_part[part++])];
          ++task.result.count;
          task.kernels.push_back(static_cast<int>(kernel));
        }
    double program = 0;
    for (Task& task : all) {
      task.choices = plan_choices_for(*task.body, lower_options());
      if (task.choices.empty()) continue;
      task.expected = task.choices[0].nanoseconds * task.result.count;
      program += task.expected;
    }
    for (Task& task : all) {
      if (task.choices.size() < 2 || task.expected < kWorthSearching * program) continue;
      task.result.kernel = task.kernels[0];
      look_up(task);
      tasks_.push_back(std::move(task));
    }
    std::ranges::stable_sort(tasks_, std::greater(), &Task::expected);
  }

  void look_up(Task& task) {
    TunedKernel& result = task.result;
    result.plan = task.choices[0].summary;
    if (const std::optional<PlanRecord> record = records_.find(*task.body)) {
      result.outcome = TuneOutcome::Known;
      result.planner_seconds = record->planner_seconds;
      result.seconds = record->seconds;
      result.tried = record->tried;
      const auto used = std::ranges::find(task.choices, record->plan, &PlanChoice::plan);
      if (used != task.choices.end()) result.plan = used->summary;
    } else if (std::string why = KernelTrial::why_not(*task.body, kMostTrialBytes); !why.empty()) {
      result.outcome = TuneOutcome::Unfit;
      result.why = std::move(why);
    }
  }

  // ---- one kernel

  // Its share of what is left of the budget, by what it takes.
  double share_of(const Task& task) const {
    double open = 0;
    for (const Task& each : tasks_)
      if (each.result.outcome == TuneOutcome::Left) open += each.expected;
    return std::max(kLeastOfKernel, search_.left() * task.expected / open);
  }

  void report(int64_t tried, double speedup) {
    if (!options_.progress || stopped_) return;
    progress_.tried = tried;
    progress_.speedup = speedup;
    progress_.seconds_left = std::max(0.0, all_.left());
    stopped_ = !options_.progress(progress_);
  }

  void search(Task& task) {
    if (stopped_ || search_.left() < kLeastOfKernel) return;
    ++progress_.kernel;
    const Deadline deadline(std::min(share_of(task), search_.left()));
    KernelTrial trial(*task.body, device_, *bench_);
    TunedKernel& result = task.result;
    report(0, 1);
    const TrialKernel own = trial.compile(options_.lower(*task.body, lower_options()));
    if (!trial.set_reference(own)) {
      result.outcome = TuneOutcome::Unfit;
      result.why = "what it stores is not finite";
      return;
    }
    const double own_seconds = trial.seconds(own, 1e300);
    double least = own_seconds;
    std::optional<TrialKernel> best;
    const PlanChoice* chosen = &task.choices[0];
    std::span<const PlanChoice> open = std::span(task.choices).subspan(1);
    size_t together = 1;
    while (!open.empty() && result.tried < kMostCandidates && !stopped_ && deadline.left() > 0) {
      const double left = deadline.left();
      const std::span<const PlanChoice> now = open.first(
          std::min({open.size(), static_cast<size_t>(kMostCandidates - result.tried), together}));
      open = open.subspan(now.size());
      std::vector<LoweredBody> lowered;
      for (const PlanChoice& choice : now)
        lowered.push_back(options_.lower(*task.body, lower_options(choice.plan)));
      const std::vector<TrialKernel> kernels = trial.compile(lowered);
      for (size_t i = 0; i < now.size() && !stopped_ && deadline.left() > 0; ++i) {
        ++result.tried;
        std::string why = lowered[i].refused;
        if (why.empty()) why = trial.why_wrong(kernels[i]);
        if (!why.empty()) {
          ++result.wrong;
          result.why = std::move(why);
        } else if (const double seconds = trial.seconds(kernels[i], least * kHopeless);
                   seconds < least) {
          least = seconds;
          best = kernels[i];
          chosen = &now[i];
        }
        report(result.tried, own_seconds / least);
      }
      // More of them together, as long as that leaves time for others.
      const bool quick = left - deadline.left() < kQuick * deadline.left();
      together =
          quick ? std::min(2 * together, static_cast<size_t>(bench_->compiled_at_once())) : 1;
    }
    // It was not searched for.
    if (stopped_ || result.tried == 0) return;
    if (!best && !open.empty() && result.tried < kFewestCandidates) return;
    admit(task, trial, own, best, *chosen);
  }

  // The best one and the planner's own take turns: what the machine does meanwhile meets both.
  void admit(Task& task, KernelTrial& trial, const TrialKernel& own,
             const std::optional<TrialKernel>& best, const PlanChoice& chosen) {
    TunedKernel& result = task.result;
    std::vector<double> of_own, of_best;
    int faster = 0;
    for (int round = 0; round < kRounds; ++round) {
      of_own.push_back(trial.seconds(own, 1e300));
      if (!best) continue;
      of_best.push_back(trial.seconds(*best, 1e300));
      faster += of_best.back() < of_own.back() ? 1 : 0;
    }
    result.planner_seconds = result.seconds = median(of_own);
    const bool admitted =
        best && faster >= kFasterRounds && median(of_best) <= kWorthIt * result.planner_seconds;
    result.outcome = admitted ? TuneOutcome::Improved : TuneOutcome::Kept;
    if (admitted) {
      result.seconds = median(of_best);
      result.plan = chosen.summary;
    }
    if (admitted)
      found_.keep(*task.body, {chosen.plan, result.planner_seconds, result.seconds, result.tried});
    else
      keep_own(task);
  }

  void keep_own(const Task& task) {
    const TunedKernel& result = task.result;
    records_.keep(*task.body, {"", result.planner_seconds, result.seconds, result.tried});
  }

  // ---- the whole program

  // Seconds of each kernel.
  struct Times {
    std::vector<std::vector<double>> kernels;  // by kernel: of each round
    double all() const {
      double sum = 0;
      for (const std::vector<double>& each : kernels) sum += median(each);
      return sum;
    }
  };

  // By the device's clock, else by this one.
  std::vector<double> seconds_of_kernels(const Executable& executable,
                                         const RunArguments& arguments,
                                         std::span<const int> bounds) const {
    if (device_.has_clock()) return executable.run_timed(arguments, bounds);
    std::vector<double> seconds;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      device_.wait();
      const Clock::time_point begin = Clock::now();
      executable.run(arguments, bounds[i], bounds[i + 1]);
      device_.wait();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return seconds;
  }

  // What is faster by itself may not be where its operands come from other kernels: those that make
  // theirs slower are taken back.
  void compare_programs() {
    const bool any = std::ranges::any_of(
        tasks_, [](const Task& task) { return task.result.outcome == TuneOutcome::Improved; });
    if (!any) return;
    if (stopped_) return leave_improved();
    const std::vector<NodeRef> variables = variables_of(schedule_);
    const std::vector<int64_t> sizes = largest_sizes(variables);
    const auto compiled = [&](TunedPlans* plans) {
      const TunedPlansScope scope(plans);
      return device_.compile(schedule_, variables);
    };
    const std::unique_ptr<Executable> tuned = compiled(&found_), own = compiled(&records_);
    const ScheduleMemory memory(schedule_, device_);
    const RunArguments arguments{memory.places(), sizes};
    const std::vector<int> bounds = kernel_bounds(schedule_);
    Times times[2];
    for (Times& each : times) each.kernels.resize(schedule_.kernels.size());
    for (int round = -1; round < kMostProgramRounds; ++round) {
      if (round >= kFewestProgramRounds && all_.left() <= 0) break;
      for (const bool is_tuned : {false, true}) {
        const std::vector<double> seconds =
            seconds_of_kernels(*(is_tuned ? tuned : own), arguments, bounds);
        // The first round touches memory.
        for (size_t i = 0; round >= 0 && i < seconds.size(); ++i)
          times[is_tuned ? 1 : 0].kernels[i].push_back(seconds[i]);
      }
    }
    before_ = times[0].all();
    after_ = before_;
    for (Task& task : tasks_)
      if (task.result.outcome == TuneOutcome::Improved) keep_if_faster(task, times[0], times[1]);
    // Of what stays, which is not measured again: kernels that are as before count as before.
    std::vector<bool> changed(schedule_.kernels.size(), false);
    for (const Task& task : tasks_)
      if (task.result.outcome == TuneOutcome::Improved)
        for (int kernel : task.kernels) changed[static_cast<size_t>(kernel)] = true;
    for (size_t i = 0; i < changed.size(); ++i)
      if (changed[i]) after_ += median(times[1].kernels[i]) - median(times[0].kernels[i]);
  }

  void keep_if_faster(Task& task, const Times& own, const Times& tuned) {
    double before = 0, after = 0;
    for (int kernel : task.kernels) {
      before += median(own.kernels[static_cast<size_t>(kernel)]);
      after += median(tuned.kernels[static_cast<size_t>(kernel)]);
    }
    if (after < before) return records_.keep(*task.body, *found_.find(*task.body));
    TunedKernel& result = task.result;
    result.outcome = TuneOutcome::Undone;
    result.seconds = result.planner_seconds;
    result.plan = task.choices[0].summary;
    keep_own(task);
  }

  // The search ended before the programs were compared: nothing is recorded of them.
  void leave_improved() {
    for (Task& task : tasks_) {
      TunedKernel& result = task.result;
      if (result.outcome != TuneOutcome::Improved) continue;
      result.outcome = TuneOutcome::Left;
      result.seconds = result.planner_seconds;
      result.plan = task.choices[0].summary;
    }
  }

  const Schedule& schedule_;
  Device& device_;
  const TuneOptions& options_;
  TunedPlans& records_;
  FoundPlans found_;
  const std::unique_ptr<KernelBench> bench_;
  const Deadline all_, search_;
  ShiftedBodies bodies_;
  std::vector<Task> tasks_;
  TuneProgress progress_;
  bool stopped_ = false;
  double before_ = 0, after_ = 0;
};

}  // namespace

std::string_view name(TuneOutcome outcome) {
  switch (outcome) {
    case TuneOutcome::Known: return "known";
    case TuneOutcome::Improved: return "improved";
    case TuneOutcome::Kept: return "kept";
    case TuneOutcome::Undone: return "undone";
    case TuneOutcome::Left: return "left";
    case TuneOutcome::Unfit: return "unfit";
  }
  return "";
}

int64_t TuneReport::count(TuneOutcome outcome) const {
  return std::ranges::count(kernels, outcome, &TunedKernel::outcome);
}

int64_t TuneReport::tried() const {
  int64_t tried = 0;
  for (const TunedKernel& each : kernels)
    if (each.outcome != TuneOutcome::Known) tried += each.tried;
  return tried;
}

TuneReport tune(const Schedule& schedule, Device& device, const TuneOptions& options) {
  return Tuner(schedule, device, options).run();
}

}  // namespace anneal
