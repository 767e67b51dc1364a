// What a Program does, as bytes: equal bytes, equal code. Its name is no part of it.
// The same in every process and on every machine, so that caches on disk may keep it.
#pragma once

#include <string>

#include "kernel/program/program.h"

namespace anneal {

std::string content(const Program& program);

}  // namespace anneal
