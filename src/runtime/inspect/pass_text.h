// What passes did, as text for people: each with its time, what it changed and the rules that fired
// in it, then the first rewrites with before and after. Must not print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewrite/pass_trace.h"

namespace anneal {

std::string pass_table_head();
std::string pass_line(const PassTrace::Row& row);   // of the table
std::string rule_line(const RewriteLog::Hit& hit);  // below it
std::string summary_line(const PassTrace& trace);   // all passes together

// A rewrite keeps all that a node reaches. Of that the node's own line and those of its operands.
std::string nearest_lines(std::string_view text);

std::vector<std::string_view> lines_of(std::string_view text);
std::string indented(std::string_view text, std::string_view margin);

// All of it.
std::string to_text(const PassTrace& trace);

}  // namespace anneal
