#include "base/debug.h"

#include <atomic>
#include <cstdio>

#include "base/os/environment.h"

namespace anneal {
namespace {

constexpr int kUnknown = -1;
std::atomic<int> g_level{kUnknown};

}  // namespace

Debug debug_level() {
  int level = g_level.load(std::memory_order_relaxed);
  if (level == kUnknown) {
    level = static_cast<int>(environment_number("ANNEAL_DEBUG", 0, kMostDebug).value_or(0));
    g_level.store(level, std::memory_order_relaxed);
  }
  return static_cast<Debug>(level);
}

void set_debug_level(Debug level) {
  g_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void write_debug(std::string_view lines) { std::fwrite(lines.data(), 1, lines.size(), stderr); }

}  // namespace anneal
