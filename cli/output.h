// What every command writes with: standard output that tells when it is gone, colours only where
// someone sees them, and names that were nearly right.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace anneal::cli {

// Standard output could not be written: a full disk, or a reader that went away.
class OutputError : public std::runtime_error {
 public:
  explicit OutputError(int error);  // an errno
  bool reader_gone() const;         // as of `anneal graph mlp | head`, which is no failure

 private:
  int error_;
};

// To standard output. What cannot be written is an OutputError, at the latest when it is flushed.
void write(std::string_view text);
void flush();
// An OutputError where nobody will read what is written; for runs that seldom write.
void check_reader();

enum class Colour { None, Teal, Ember, Gold, Dim, Bold };
// The text in a colour, or as it is when the output is no terminal or NO_COLOR is set.
std::string paint(Colour colour, std::string_view text);

// "512 MiB", "1.5 GiB".
std::string bytes_text(int64_t bytes);

// The names that look most like a wrong one, best first; none when nothing is near.
std::vector<std::string_view> near_names(std::string_view wrong,
                                         std::span<const std::string_view> names);

}  // namespace anneal::cli
