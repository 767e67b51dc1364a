#include "rewrite/passes.h"

#include <algorithm>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/os/mutex.h"

namespace anneal {
namespace {

PassRequests& requests() {
  static auto& requests = *new PassRequests;  // lives as long as the process
  return requests;
}

// Programs may be compiled in several threads.
struct Times {
  Mutex mutex;
  std::vector<PassTime> rows;
};

Times& times() {
  static auto& times = *new Times;
  return times;
}

void add_time(std::string_view stage, std::string_view pass, bool changed, double seconds) {
  const Lock lock(times().mutex);
  std::vector<PassTime>& rows = times().rows;
  auto row = std::ranges::find_if(
      rows, [&](const PassTime& each) { return each.stage == stage && each.pass == pass; });
  if (row == rows.end()) row = rows.insert(rows.end(), {stage, pass});
  ++row->runs;
  row->changes += changed ? 1 : 0;
  row->seconds += seconds;
}

}  // namespace

const PassRequests& pass_requests() { return requests(); }

void set_pass_requests(PassRequests wanted) { requests() = std::move(wanted); }

std::vector<PassTime> pass_times() {
  const Lock lock(times().mutex);
  return times().rows;
}

bool is_disabled(std::string_view name, std::span<const std::string> disabled) {
  return std::ranges::count(disabled, name) > 0 ||
         std::ranges::count(pass_requests().disabled, name) > 0;
}

PassRun::PassRun(std::string_view stage, std::string_view pass)
    : stage_(stage),
      pass_(pass),
      timed_(pass_requests().time),
      dumped_(pass_requests().dump &&
              (pass_requests().dump_after == pass || pass_requests().dump_after == "all")),
      verified_(pass_requests().verify),
      begin_(timed_ ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point()) {}

void PassRun::ended() {
  if (timed_)
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void PassRun::finish(bool changed, std::string_view text, std::string_view problem) {
  if (timed_) add_time(stage_, pass_, changed, seconds_);
  if (dumped_) pass_requests().dump(stage_, pass_, text);
  if (!problem.empty())
    throw InternalError(fmt::format("after pass {} of {}: {}", pass_, stage_, problem));
}

}  // namespace anneal
