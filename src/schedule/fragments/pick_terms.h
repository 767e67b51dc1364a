// A sum of which one term counts is that term: where a mask compares the axis with a number, as the
// loss of a class does, the sum over where(k == label, x[k], 0) reads x[label] instead of every x.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/fuse/rangeify.h"

namespace anneal {

void pick_terms(Rangified& program);
std::vector<std::string_view> pick_terms_rules();  // their names

}  // namespace anneal
