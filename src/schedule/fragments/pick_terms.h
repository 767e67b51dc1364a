// A sum of which one term counts is that term: where a mask compares the axis with a number, as the
// loss of a class does, the sum over where(k == label, x[k], 0) reads x[label] instead of every x.
#pragma once

#include "schedule/fuse/rangeify.h"

namespace anneal {

void pick_terms(Rangified& program);

}  // namespace anneal
