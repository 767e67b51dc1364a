// Searches plans for the kernels of a program that take longest: measures candidates within a
// budget of time, admits what computes the same and is faster, and records it, so that it is found
// when the program is compiled. Prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/target_kernels.h"
#include "runtime/device/device.h"
#include "runtime/device/tuned_plans.h"

namespace anneal {

struct TuneProgress {
  size_t kernel = 0, kernels = 0;  // that are searched for, from 1
  int64_t tried = 0;               // candidates of this one
  double speedup = 1;              // of the best one so far
  double seconds_left = 0;
};

struct TuneOptions {
  double seconds = 30;  // for all of it
  // Called after each candidate; the search ends where it answers false.
  std::function<bool(const TuneProgress&)> progress = {};
  TunedPlans* records = nullptr;  // where to; null: Device::tuned_plans()
  // How candidates become programs; for tests, which make wrong ones.
  LoweredBody (*lower)(const KernelBody& body, const LowerOptions& options) = lower_for;
};

enum class TuneOutcome : uint8_t {
  Known,     // found in an earlier search
  Improved,  // a candidate is faster, and recorded
  Kept,      // the planner's own does best, which is recorded, too
  Undone,    // faster by itself but not within the program; recorded as the planner's own
  Left,      // the budget ended before
  Unfit,     // cannot be tried by itself
};
std::string_view name(TuneOutcome outcome);

struct TunedKernel {
  int kernel = 0;  // of the schedule: the first it is in
  int count = 0;   // so many parts of the schedule run it
  TuneOutcome outcome = TuneOutcome::Left;
  double planner_seconds = 0, seconds = 0;  // of one run, with the planner's own plan and now
  int64_t tried = 0, wrong = 0;             // candidates, and those that computed something else
  std::string plan;                         // the one that will be used, for people
  std::string why;                          // of what is unfit; of the last wrong one
};

struct TuneReport {
  std::vector<TunedKernel> kernels;  // those that have candidates, what takes longest first
  double seconds = 0;                // that were used
  // The whole program, with the planner's plans and with those recorded; 0: nothing was improved,
  // so that it was not measured.
  double program_before = 0, program_after = 0;

  int64_t count(TuneOutcome outcome) const;
  int64_t tried() const;
};

// The schedule is of the device, which takes tuned plans. Not while other threads compile or run
// programs, which would be measured, too.
TuneReport tune(const Schedule& schedule, Device& device, const TuneOptions& options = {});

}  // namespace anneal
