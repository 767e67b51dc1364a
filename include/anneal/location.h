// std::source_location, by which every public call knows the line it was written on. A compiler
// that is too old hears so here.
#pragma once

#include <version>

#ifndef __cpp_lib_source_location
#error "anneal needs C++20 with <source_location>: -std=c++20 of g++ 11, clang 16 or newer"
#endif

#include <source_location>
