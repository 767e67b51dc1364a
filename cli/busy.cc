#include "cli/busy.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace anneal::cli {
namespace {

constexpr std::chrono::seconds kPatience(2), kTick(1);

std::mutex newest_mutex;
Busy* newest = nullptr;

}  // namespace

Busy::Busy(std::string what) : what_(std::move(what)), thread_([this] { watch(); }) {
  const std::lock_guard lock(newest_mutex);
  outer_ = std::exchange(newest, this);
}

bool Busy::set_detail(const std::string& detail) {
  const std::lock_guard lock(newest_mutex);
  if (!newest) return false;
  const std::lock_guard lock_text(newest->mutex_);
  newest->detail_ = detail;
  return true;
}

Busy::~Busy() {
  {
    const std::lock_guard lock(newest_mutex);
    newest = outer_;
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void Busy::watch() {
  const bool terminal = isatty(fileno(stderr)) != 0;
  std::unique_lock lock(mutex_);
  auto ended_within = [&](std::chrono::seconds time) {
    return ended_changed_.wait_for(lock, time, [this] { return ended_; });
  };
  if (ended_within(kPatience)) return;
  if (!terminal) {
    fmt::print(stderr, "{} …\n", what_);
    return;
  }
  std::chrono::seconds time = kPatience;
  do {
    const char* between = detail_.empty() ? "" : ", ";
    fmt::print(stderr, "\r\x1b[K{}{}{} … {} s\r", what_, between, detail_, time.count());
    time += kTick;
  } while (!ended_within(kTick));
  fmt::print(stderr, "\r\x1b[K");
}

}  // namespace anneal::cli
