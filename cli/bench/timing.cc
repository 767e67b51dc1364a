#include "cli/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <fmt/format.h>

namespace anneal::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kNever = std::numeric_limits<double>::infinity();

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Threads of the side that had its turn go on looking for work for a while: let them fall asleep.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

// The least time of one turn.
double turn(const Run& run, double seconds) {
  settle();
  const Clock::time_point start = Clock::now();
  double least = kNever;
  do {
    least = std::min(least, run());
  } while (seconds_since(start) < seconds);
  return least;
}

// Both sides have many short turns, so that a slow while of the machine hits them alike.
constexpr int kTurns = 5;

}  // namespace

bool BenchContext::asked_for(std::string_view name) const {
  return name.find(options.only) != std::string_view::npos;
}

bool BenchContext::begin(std::string_view bench, std::string_view name) const {
  if (!asked_for(name)) return false;
  report.measuring(
      fmt::format("{} {}, {} {}", bench, name, threads, threads == 1 ? "thread" : "threads"));
  return true;
}

BenchRow BenchContext::row(std::string_view bench, std::string_view name,
                           std::string_view unit) const {
  BenchRow row;
  row.bench = bench;
  row.name = name;
  row.device = device.name();
  row.threads = threads;
  row.unit = unit;
  row.of_halves = device.device() && device.capabilities().matrix_element_bytes > 0;
  return row;
}

Timing time_against(const BenchContext& context, const Run& ours, PeerKind kind,
                    std::string_view peer_case) {
  Timing best{kNever, {}};
  const double seconds = context.options.seconds / kTurns;
  for (int i = 0; i < kTurns; ++i) {
    if (i == 0 || !best.peer.name.empty()) {
      PeerTime peer = context.peers.time(kind, peer_case, seconds);
      if (i == 0 || peer.seconds < best.peer.seconds) best.peer = std::move(peer);
    }
    best.ours = std::min(best.ours, turn(ours, seconds));
  }
  return best;
}

TimingOfTwo time_both(const BenchContext& context, const Run& first, const Run& second) {
  TimingOfTwo best{kNever, kNever};
  for (int i = 0; i < kTurns; ++i) {
    best.first = std::min(best.first, turn(first, context.options.seconds / kTurns));
    best.second = std::min(best.second, turn(second, context.options.seconds / kTurns));
  }
  return best;
}

double time_alone(const BenchContext& context, const Run& run) {
  return turn(run, context.options.seconds);
}

void add_rates(const BenchContext& context, BenchRow row, const Timing& timing, double work) {
  row.ours = work / timing.ours;
  if (timing.peer.name.empty()) {
    row.peer = row.note = timing.peer.reason;
  } else {
    row.peer = timing.peer.name;
    row.peer_value = work / timing.peer.seconds;
  }
  context.report.add(std::move(row));
}

Tensor filled(const std::vector<int64_t>& sizes, int64_t period, DType dtype) {
  Sizes shape;
  int64_t count = 1;
  for (int64_t size : sizes) {
    shape.emplace_back(size);
    count *= size;
  }
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        (static_cast<float>(i % period) + 1) / static_cast<float>(period);
  Tensor result = from_data(values, shape);
  if (dtype != DType::F32) result = evaluate({result.cast(dtype)})[0];
  return result;
}

}  // namespace anneal::cli
