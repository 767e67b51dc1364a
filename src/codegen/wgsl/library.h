// WGSL functions that programs call, as text. What each gives for every value is semantics.cc's and
// scalar.cc's to say.
#pragma once

#include <set>
#include <string>

namespace anneal::wgsl {

// Those named and all they call, in an order in which everything is declared before its use.
std::string library_text(const std::set<std::string, std::less<>>& names);

}  // namespace anneal::wgsl
