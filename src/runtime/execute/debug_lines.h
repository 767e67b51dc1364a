// What ANNEAL_DEBUG shows of programs: a line for each that is compiled, and its kernels with the
// times of its first runs. Must not decide what is compiled or run.
#pragma once

#include <span>
#include <string_view>

#include "base/key.h"
#include "schedule/schedule.h"

namespace anneal {

// `where`: the device or target. Nothing below level 1.
void debug_plan(const Key& key, std::string_view where, const Schedule& schedule, double seconds);

// `seconds`: by kernel; none where the device has no clock.
void debug_kernels(const Schedule& schedule, std::span<const double> seconds);

}  // namespace anneal
