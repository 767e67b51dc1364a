// Plans as a line of text each: what differs between two ways to run the same body. For people and
// for comparisons between versions of the program; nothing reads it back.
#pragma once

#include <string>

#include "kernel/analysis.h"
#include "kernel/plan.h"

namespace anneal {

std::string to_text(const CellPlan& plan, const Analysis& analysis);
std::string to_text(const ProductPlan& plan, const Analysis& analysis);
std::string to_text(const GroupElements& plan, const Analysis& analysis);
std::string to_text(const GroupSquares& plan, const Analysis& analysis);
std::string to_text(const GroupProduct& plan, const Analysis& analysis);

}  // namespace anneal
