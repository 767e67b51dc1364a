// How a command fails: exit codes, command lines that make no sense, and how it is told.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <anneal/error.h>

namespace anneal::cli {

enum Exit : int {
  kWorked = 0,
  kFailed = 1,
  kUsage = 2,          // the command line or the environment makes no sense
  kInterrupted = 130,  // as a shell says of Ctrl-C
  kReaderGone = 141,   // as a shell says of a closed pipe, of a run that was not at its end
};

// A command line that makes no sense, whatever is on the machine.
class UsageError : public UserError {
 public:
  UsageError(std::string message, std::string hint)
      : UserError(std::move(message), std::move(hint), std::source_location{}) {}
};

// Throws a UsageError: "there is no WHAT 'wrong'", with near names and all of them as the hint.
[[noreturn]] void fail_unknown(std::string_view what, std::string_view wrong,
                               std::span<const std::string_view> names);

// Tells of the exception that is being handled, on standard error, or as the object that ends a
// stream of JSON. The exit code.
int report_failure(bool json);

}  // namespace anneal::cli
