// Loops over neighbouring axes become one loop where everything in them goes through memory as if
// they were: fewer divisions to find an element's place, and longer runs to cut into pieces.
#pragma once

#include "schedule/fuse/rangeify.h"

namespace anneal {

void flatten_axes(Rangified& program);

}  // namespace anneal
