// How a run goes: a bar that moves on a terminal, lines elsewhere, or one JSON object a step.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <anneal/counters.h>

#include "cli/train/task.h"

namespace anneal::cli {

struct StepResult {
  int64_t step;  // how many are done with it
  double loss, ms;
  int64_t items;
  Counters counters;  // of this step alone
};

struct RunResult {
  int64_t steps;
  std::optional<double> loss;  // of the last step; none when there was no step to do
  std::optional<Score> score;
  int64_t skipped;     // updates that gradients were not finite for
  std::string saved;   // where to; empty: nowhere
  std::string sample;  // of a text; empty: none
  bool interrupted;
};

class Report {
 public:
  enum class Form { Bar, Lines, Json };
  Report(Form form, std::string_view model, const char* unit, int64_t first, int64_t steps,
         int64_t every);
  ~Report();  // the terminal is as it was
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void begin(const std::string& data, int64_t parameters,
             const std::vector<ChangedSetting>& changed);
  void step(const StepResult& result);
  void score(int64_t step, const Score& score);
  void done(const RunResult& result);

 private:
  using Clock = std::chrono::steady_clock;
  void line(const std::string& text);
  bool is_line_due(const StepResult& result) const;
  void remember(double loss);
  void draw_bar(const StepResult& result);
  void clear_bar();
  double rate() const;  // items a second, of the last steps

  Form form_;
  std::string model_;
  const char* unit_;
  int64_t first_, steps_, every_;
  Clock::time_point started_ = Clock::now(), drawn_, line_written_;
  std::vector<double> losses_;  // of the whole run, means of so many steps each:
  int64_t steps_a_loss_ = 1, steps_in_last_ = 0;
  std::deque<std::pair<double, int64_t>> speeds_;  // seconds and items of the last steps
  bool bar_shown_ = false;
};

}  // namespace anneal::cli
