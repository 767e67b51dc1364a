// What is known of the indices of a program without running it.
#pragma once

#include <vector>

#include "kernel/program/program.h"

namespace anneal {

// By instruction: an index that is never negative, as indices do not overflow. Divisions of such
// are cheaper.
std::vector<bool> find_never_negative(const Program& program);

}  // namespace anneal
