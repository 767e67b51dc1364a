#include "cli/failure.h"

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "anneal_version.h"
#include "base/os/environment.h"
#include "cli/json.h"
#include "cli/output.h"

namespace anneal::cli {
namespace {

struct Failure {
  int code;
  std::string text;  // for people
  std::string error, hint;
};

Failure of_user(const UserError& error, int code) {
  return {code, error.what(), error.message(), error.hint()};
}

// What is being handled, in words.
Failure current_failure() {
  try {
    throw;
  } catch (const UsageError& error) {
    return of_user(error, kUsage);
  } catch (const EnvironmentError& error) {
    return of_user(error, kUsage);
  } catch (const UserError& error) {
    return of_user(error, kFailed);
  } catch (const InternalError& error) {
    const std::string hint = fmt::format(
        "this is a bug in anneal {}, not in what you did: please report it with the command line",
        ANNEAL_VERSION);
    return {kFailed, fmt::format("{}\n  {}", error.what(), hint), error.what(), hint};
  } catch (const std::exception& error) {
    return {kFailed, fmt::format("error: {}", error.what()), error.what(), ""};
  }
}

int report_lost_output(const OutputError& error) {
  if (error.reader_gone()) return kWorked;
  fmt::print(stderr, "error: {}\n", error.what());
  return kFailed;
}

}  // namespace

void fail_unknown(std::string_view what, std::string_view wrong,
                  std::span<const std::string_view> names) {
  const std::vector<std::string_view> near = near_names(wrong, names);
  std::string hint = near.empty() ? "" : fmt::format("did you mean {}? ", fmt::join(near, ", "));
  constexpr size_t kMost = 250;  // of names that are shown beside a guess
  if (near.empty() || names.size() <= kMost)
    hint += fmt::format("there are: {}", fmt::join(names, ", "));
  throw UsageError(fmt::format("there is no {} '{}'", what, wrong), hint);
}

int report_failure(bool json) try {
  try {
    throw;
  } catch (const OutputError& error) {
    return report_lost_output(error);
  } catch (...) {
    const Failure failure = current_failure();
    if (json) {
      write(Json::object()
                .set("error", failure.error)
                .set("hint", failure.hint)
                .set("exit", failure.code)
                .text() +
            "\n");
      flush();
    } else {
      fmt::print(stderr, "{}\n", failure.text);
    }
    return failure.code;
  }
} catch (const OutputError& error) {
  report_lost_output(error);
  return kFailed;
}

}  // namespace anneal::cli
