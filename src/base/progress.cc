#include "base/progress.h"

#include <atomic>
#include <utility>

#include "base/os/mutex.h"

namespace anneal {
namespace {

struct Listener {
  Mutex mutex;
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
  const Lock lock(one.mutex);
  one.function = std::move(function);
  one.there = static_cast<bool>(one.function);
}

void report_progress(const CompileProgress& progress) {
  Listener& one = listener();
  if (!one.there) return;
  const Lock lock(one.mutex);
  if (one.function) one.function(progress);
}

}  // namespace anneal
