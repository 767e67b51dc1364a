// Index expressions as text, for tables of tests.
#pragma once

#include <string_view>

#include "ir/node.h"

namespace anneal {

// One of the variables that all tables share, with the range that index_text.cc gives it.
NodeRef variable(std::string_view name);

// Reads what to_text writes, into nodes just as they are written: nothing is simplified.
NodeRef read(std::string_view text);

}  // namespace anneal
