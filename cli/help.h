// The text of a command's --help, in lines of 80 columns.
#pragma once

#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace anneal::cli {

// With the command's own options, in the order in which they were added.
std::string command_help(const CLI::App& command);

// The text in lines of at most `width` columns, broken at spaces; lines after the first begin with
// `margin` spaces, which count.
std::string wrapped(std::string_view text, size_t width, size_t margin);

}  // namespace anneal::cli
