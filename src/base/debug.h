// How much is said on standard error of what the compiler does, at a user's wish: ANNEAL_DEBUG, or
// --debug of the program. Nothing else in the library prints by itself. Costs a comparison where
// nobody asked.
#pragma once

#include <string_view>

namespace anneal {

enum class Debug : int {
  Nothing = 0,
  Plans = 1,    // a line for each program that is compiled
  Kernels = 2,  // and its kernels, with measured times
  Passes = 3,   // and every pass, with its time and what it changed
};
inline constexpr int kMostDebug = static_cast<int>(Debug::Passes);

// What ANNEAL_DEBUG says, until it is set. An EnvironmentError where that makes no sense.
Debug debug_level();
void set_debug_level(Debug level);
inline bool debugs(Debug level) { return debug_level() >= level; }

// Whole lines, from any thread.
void write_debug(std::string_view lines);

}  // namespace anneal
