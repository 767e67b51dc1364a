// What every command writes with: standard output that survives a closed pipe, colours only where
// someone sees them, and names that were nearly right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace anneal::cli {

// To standard output. Once a write has failed, the rest is dropped: see finish_output().
void write(std::string_view text);
// Flushes. False, with the reason on standard error, when something could not be written; a reader
// that went away (anneal graph mlp | head) is no failure.
bool finish_output();

enum class Colour { None, Teal, Ember, Gold, Dim, Bold };
// The text in a colour, or as it is when the output is no terminal or NO_COLOR is set.
std::string paint(Colour colour, std::string_view text);

// "512 MiB", "1.5 GiB".
std::string bytes_text(int64_t bytes);

// The names that look most like a wrong one, best first; none when nothing is near.
std::vector<std::string_view> near_names(std::string_view wrong,
                                         std::span<const std::string_view> names);

// Throws a UserError: "there is no WHAT 'wrong'", with near names, or all of them, as the hint.
[[noreturn]] void fail_unknown(std::string_view what, std::string_view wrong,
                               std::span<const std::string_view> names);

}  // namespace anneal::cli
