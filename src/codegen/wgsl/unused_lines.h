// Leaves out what is named and never used: places of elements that were read as part of a vector,
// constants that were folded. Compilers would do so too, but take longer than we do, and people
// read this text.
#pragma once

#include <string>
#include <string_view>

namespace anneal::wgsl {

// Of a body's lines, those that have an effect or whose name a later line mentions. Names are
// unique in it; what `effect` begins is kept: calls that other threads wait for.
std::string without_unused(std::string_view body, std::string_view effect);

}  // namespace anneal::wgsl
