// Additions at computed places, as sums over what is added.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/node.h"
#include "target/schedule_tuning.h"

namespace anneal {

// A ScatterAdd adds one value after the other, so that the order of its sums is fixed. Where there
// are many threads to keep busy and few results, each result looks for what is added to it instead.
std::vector<NodeRef> scatters_as_reductions(std::span<const NodeRef> roots,
                                            const ScheduleTuning& tuning);
std::vector<std::string_view> scatter_rules();  // their names

}  // namespace anneal
