// Plans as a line of text each: what differs between two ways to run the same body. For people and
// for comparisons between versions of the program; nothing reads it back.
#pragma once

#include <string>

#include "kernel/plan/analysis.h"
#include "kernel/plan/plan.h"

namespace anneal {

std::string to_text(const CellPlan& plan, const Analysis& analysis);
std::string to_text(const ProductPlan& plan, const Analysis& analysis);
std::string to_text(const WorkgroupElements& plan, const Analysis& analysis);
std::string to_text(const TransposeTile& plan, const Analysis& analysis);
std::string to_text(const WorkgroupProduct& plan, const Analysis& analysis);

}  // namespace anneal
