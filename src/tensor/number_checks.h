// Numbers among options. A bad one is an error where it is given, and not NaN in what is computed
// with it later. Inside a call: the message gets its line from there.
#pragma once

#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/call_site.h"

namespace anneal {

inline void check_finite(std::string_view what, double value) {
  if (!std::isfinite(value)) fail(fmt::format("{} is {}", what, value), "give a finite number");
}
inline void check_not_negative(std::string_view what, double value) {
  if (!(std::isfinite(value) && value >= 0))
    fail(fmt::format("{} is {}", what, value), "give a finite number of 0 or more");
}
inline void check_above_zero(std::string_view what, double value) {
  if (!(std::isfinite(value) && value > 0))
    fail(fmt::format("{} is {}", what, value), "give a finite number above 0");
}
// 1 is excluded: nothing new would count.
inline void check_fraction(std::string_view what, double value) {
  if (!(value >= 0 && value < 1))
    fail(fmt::format("{} is {}", what, value), "give 0 or more and less than 1");
}
inline void check_part(std::string_view what, double value) {
  if (!(value >= 0 && value <= 1)) fail(fmt::format("{} is {}", what, value), "give 0 to 1");
}

}  // namespace anneal
