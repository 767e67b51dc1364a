// Numbers of the command line: how they may be written, and what is said where one makes no sense.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace anneal::cli {

struct CountRange {
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
};
struct RealRange {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool above = false;  // more than `least`, not as much
};

// A whole number, also as 1e3. A UsageError names the option and what it takes.
int64_t parse_count(const std::string& option, const std::string& text, const CountRange& range);
// Several of them: 1,2
std::vector<int> parse_counts(const std::string& option, const std::string& text,
                              const CountRange& range);
double parse_real(const std::string& option, const std::string& text, const RealRange& range);

}  // namespace anneal::cli
