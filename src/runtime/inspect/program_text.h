// What a program becomes on the current device of this thread, as text for people: compiled once
// more to be looked at. Must not run it.
#pragma once

#include <string>
#include <string_view>

#include "runtime/program/canonical_program.h"

namespace anneal {

// Its kernels, and why they are not fewer. `name`: whose program it is. A user error where the
// device makes no kernels.
std::string kernels_text(const CanonicalProgram& program, std::string_view name);
// The compiler's passes, and the rules that fired in them.
std::string passes_text(const CanonicalProgram& program, std::string_view name);

}  // namespace anneal
