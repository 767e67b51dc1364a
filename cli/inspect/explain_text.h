// What the explanations of ops, functions and programs have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/json.h"
#include "rewrite/rewriter.h"
#include "runtime/inspect/pass_text.h"

namespace anneal::cli {

using Hits = std::vector<RewriteLog::Hit>;

Json hits_json(const Hits& hits);
// In the order in which rules are tried.
Hits ordered_hits(const RewriteLog& log);
void write_hits(const Hits& hits);  // a line each, and their sum

// A line of facts: "  dtypes    f16, f32".
void write_fact(std::string_view title, std::string_view text);

}  // namespace anneal::cli
