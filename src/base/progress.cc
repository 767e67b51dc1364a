#include "base/progress.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace anneal {
namespace {

struct Listener {
  std::mutex mutex;
  std::function<void(const CompileProgress&)> function;
  std::atomic<bool> there{false};
};

Listener& listener() {
  static auto& listener = *new Listener;  // lives as long as the process
  return listener;
}

}  // namespace

void on_compile_progress(std::function<void(const CompileProgress&)> function) {
  Listener& one = listener();
  const std::lock_guard lock(one.mutex);
  one.function = std::move(function);
  one.there = static_cast<bool>(one.function);
}

void report_progress(const CompileProgress& progress) {
  Listener& one = listener();
  if (!one.there) return;
  const std::lock_guard lock(one.mutex);
  if (one.function) one.function(progress);
}

}  // namespace anneal
