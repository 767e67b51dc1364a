#include "cli/train/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/output.h"

namespace anneal::cli {
namespace {

constexpr const char* kNoBar = "\r\x1b[K";
constexpr size_t kSparks = 16, kSpeeds = 50;
constexpr auto kFrame = std::chrono::milliseconds(50);  // between two drawings of the bar

size_t terminal_width() {
  winsize size = {};
  return ioctl(fileno(stdout), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// From the lowest to the highest of the values, in eight heights.
std::string sparkline(const std::vector<double>& values) {
  constexpr std::array kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto [low, high] = std::ranges::minmax(values);
  std::string text;
  for (const double value : values) {
    const double part = high > low ? (value - low) / (high - low) : 0;
    text += kHeights[static_cast<size_t>(std::lround(part * (kHeights.size() - 1)))];
  }
  return text;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

// 12,345
std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

Json counters_json(const Counters& c) {
  return Json::object()
      .set("nodes_built", c.nodes_built)
      .set("kernels_scheduled", c.kernels_scheduled)
      .set("kernels_compiled", c.kernels_compiled)
      .set("launches", c.launches)
      .set("bytes_allocated", c.bytes_allocated)
      .set("host_to_device_bytes", c.host_to_device_bytes)
      .set("device_to_host_bytes", c.device_to_host_bytes);
}

double per_second(int64_t items, double ms) {
  return static_cast<double>(items) / std::max(ms * 1e-3, 1e-9);
}

// A reader sees each line when it is written.
void write_now(const std::string& text) {
  write(text);
  flush();
}

Json changed_json(const std::vector<ChangedSetting>& changed) {
  Json list = Json::array();
  for (const ChangedSetting& each : changed)
    list.add(Json::object()
                 .set("option", each.option)
                 .set("holds", each.now)
                 .set("checkpoint", each.before));
  return list;
}

}  // namespace

Report::Report(Form form, std::string_view model, const char* unit, int64_t first, int64_t steps,
               int64_t every)
    : form_(form), model_(model), unit_(unit), first_(first), steps_(steps), every_(every) {}

// Not by write(), which may throw.
Report::~Report() {
  if (!bar_shown_) return;
  std::fputs(kNoBar, stdout);
  std::fflush(stdout);
}

void Report::begin(const std::string& data, int64_t parameters,
                   const std::vector<ChangedSetting>& changed) {
  if (form_ == Form::Json) {
    if (!changed.empty())
      write_now(
          Json::object().set("resumed_after", first_).set("changed", changed_json(changed)).text() +
          "\n");
    return;
  }
  line(fmt::format("{}: {} parameters", model_, grouped(static_cast<double>(parameters))));
  line(fmt::format("data: {}", data));
  if (first_ > 0) line(fmt::format("going on after step {}", first_));
  for (const std::string& text : texts_of(changed)) line(text);
}

void Report::step(const StepResult& result) {
  if (form_ == Form::Json) {
    write_now(Json::object()
                  .set("step", result.step)
                  .set("loss", result.loss)
                  .set("ms", result.ms)
                  .set(fmt::format("{}_per_s", unit_), per_second(result.items, result.ms))
                  .set("counters", counters_json(result.counters))
                  .text() +
              "\n");
    return;
  }
  // The first step compiles: it says nothing about the next ones.
  if (result.step > first_ + 1) speeds_.emplace_back(result.ms * 1e-3, result.items);
  if (speeds_.size() > kSpeeds) speeds_.pop_front();
  remember(result.loss);
  if (form_ == Form::Bar)
    draw_bar(result);
  else if (is_line_due(result))
    line(fmt::format("step {:>5}  loss {:.4f}  {:>8.2f} ms  {} {}/s", result.step, result.loss,
                     result.ms, grouped(per_second(result.items, result.ms)), unit_));
}

// By steps, and before ten seconds have passed without a line.
bool Report::is_line_due(const StepResult& result) const {
  constexpr std::chrono::duration<double> kSilence(10);
  const std::chrono::duration<double, std::milli> step(result.ms);
  return result.step % every_ == 0 || result.step == first_ + 1 || result.step == steps_ ||
         Clock::now() + step - line_written_ > kSilence;
}

void Report::score(int64_t step, const Score& score) {
  if (form_ == Form::Json)
    write_now(
        Json::object().set("step", step).set("eval", true).set(score.name, score.value).text() +
        "\n");
  else
    line(fmt::format("step {:>5}  {}", step, score.text));
}

void Report::done(const RunResult& result) {
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  if (form_ == Form::Json) {
    Json json = Json::object();
    json.set("done", !result.interrupted).set("steps", result.steps);
    json.set("loss", result.loss ? Json(*result.loss) : Json());
    if (result.score) json.set(result.score->name, result.score->value);
    json.set("seconds", seconds).set("skipped_updates", result.skipped);
    json.set("saved", result.saved.empty() ? Json() : Json(result.saved));
    if (!result.sample.empty()) json.set("sample", result.sample);
    write_now(json.text() + "\n");
    return;
  }
  clear_bar();
  if (result.score) line(result.score->text);
  if (result.skipped > 0)
    line(fmt::format("{} updates were left out: their gradients were not finite", result.skipped));
  if (!result.saved.empty()) line(fmt::format("saved {}", result.saved));
  line(fmt::format("{} after {} steps, {}", result.interrupted ? "interrupted" : "done",
                   result.steps, time_text(seconds)));
  if (!result.sample.empty()) line("\n" + result.sample);
}

void Report::remember(double loss) {
  if (losses_.empty() || steps_in_last_ == steps_a_loss_) {
    if (losses_.size() == kSparks) {  // no room: one for two
      for (size_t i = 0; i < kSparks / 2; ++i)
        losses_[i] = (losses_[2 * i] + losses_[2 * i + 1]) / 2;
      losses_.resize(kSparks / 2);
      steps_a_loss_ *= 2;
    }
    losses_.push_back(0);
    steps_in_last_ = 0;
  }
  ++steps_in_last_;
  losses_.back() += (loss - losses_.back()) / static_cast<double>(steps_in_last_);
}

void Report::line(const std::string& text) {
  clear_bar();
  write_now(text + "\n");
  line_written_ = Clock::now();
}

double Report::rate() const {
  double seconds = 0;
  int64_t items = 0;
  for (const auto& [s, i] : speeds_) {
    seconds += s;
    items += i;
  }
  return seconds > 0 ? static_cast<double>(items) / seconds : 0;
}

void Report::draw_bar(const StepResult& result) {
  const Clock::time_point now = Clock::now();
  if (bar_shown_ && now - drawn_ < kFrame && result.step < steps_) return;
  drawn_ = now;
  double seconds = 0;  // a step, of late
  for (const auto& [s, items] : speeds_) seconds += s / static_cast<double>(speeds_.size());
  const std::string numbers =
      fmt::format("{:>{}}/{}  loss {:.4f}  {} {}/s  {} left  ", result.step,
                  std::to_string(steps_).size(), steps_, result.loss, grouped(rate()), unit_,
                  time_text(seconds * static_cast<double>(steps_ - result.step)));
  const size_t width = terminal_width(), taken = numbers.size() + kSparks + 2;
  const size_t cells = width > taken + 6 ? std::min<size_t>(width - taken - 2, 30) : 0;
  const size_t full = cells * static_cast<size_t>(result.step) / static_cast<size_t>(steps_);
  std::string bar;
  for (size_t i = 0; i < cells; ++i) bar += i < full ? "█" : "░";
  // The cursor stays at the start of the line, and no mode of the terminal is changed.
  write_now(fmt::format("\r\x1b[K{} {}{}\r", paint(Colour::Ember, bar), numbers,
                        width > taken ? paint(Colour::Teal, sparkline(losses_)) : ""));
  bar_shown_ = true;
}

void Report::clear_bar() {
  if (!bar_shown_) return;
  write_now(kNoBar);
  bar_shown_ = false;
}

}  // namespace anneal::cli
