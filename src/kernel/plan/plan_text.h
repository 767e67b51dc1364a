// Plans as text: for people, and in full, to be kept and read back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/key.h"
#include "kernel/plan/kernel_plan.h"

namespace anneal {

// What differs between two ways to run the same body, with the sizes of axes. Nothing reads it
// back.
std::string summary(const KernelPlan& plan, const Analysis& analysis);

// All of it, nodes by their numbers: the text of two plans for a body is the same exactly where
// the plans are.
std::string to_text(const KernelPlan& plan, const Analysis& analysis);
Key hash_of(const KernelPlan& plan, const Analysis& analysis);

// A plan for the body that is analysed; where the text is none, `problem` says why. What it says of
// the body is to be verified.
std::optional<KernelPlan> parse_plan(std::string_view text, const Analysis& analysis,
                                     std::string& problem);

}  // namespace anneal
