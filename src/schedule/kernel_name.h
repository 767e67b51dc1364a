// What a kernel is called, for people: the public operations it comes from, most frequent first.
#pragma once

#include <string>

#include "schedule/schedule.h"

namespace anneal {

std::string kernel_name(const Kernel& kernel);  // "linear+relu"

}  // namespace anneal
