#include "cli/cache.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/os/environment.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/output.h"
#include "runtime/disk/kernel_folder.h"
#include "runtime/disk/plan_records.h"

namespace anneal::cli {
namespace {

constexpr std::array<std::string_view, 3> kActions{"show", "clear", "limit"};

std::string files_text(int64_t files) {
  return fmt::format("{} {}", files, files == 1 ? "kernel" : "kernels");
}

// What anneal tune found.
KernelFolder plans_of(const std::string& directory) {
  return {directory, PlanRecords::kLimits, PlanRecords::kContent};
}

std::string plans_text(int64_t plans) {
  return fmt::format("{} tuned {}", plans, plans == 1 ? "plan" : "plans");
}

std::string age_text(double seconds) {
  struct Unit {
    double seconds;
    std::string_view name;
  };
  constexpr std::array<Unit, 3> kUnits{{{86400, "day"}, {3600, "hour"}, {60, "minute"}}};
  for (const Unit& unit : kUnits)
    if (const auto count = static_cast<int64_t>(seconds / unit.seconds); count > 0)
      return fmt::format("{} {}{} ago", count, unit.name, count == 1 ? "" : "s");
  return "less than a minute ago";
}

std::string directory_or_fail() {
  const std::string directory = default_cache_directory();
  if (directory.empty())
    throw UserError("compiled kernels are not kept on disk",
                    "unset ANNEAL_CACHE, or name a folder in ANNEAL_CACHE_DIR", {});
  return directory;
}

void show(const std::string& directory, bool json) {
  const KernelFolderLimits limits = cache_limits(directory);
  const KernelFolder folder(directory, limits);
  const KernelFolder::Contents held = folder.contents();
  const int64_t plans = plans_of(directory).contents().files;
  const std::string not_own = folder.not_own();
  if (json) {
    write(Json::object()
              .set("directory", directory)
              .set("kernels", held.files)
              .set("bytes", held.bytes)
              .set("plans", plans)
              .set("limit_bytes", limits.bytes)
              .set("limit_kernels", limits.files)
              .set("oldest_use_s", held.oldest)
              .set("newest_use_s", held.newest)
              .set("not_used_because", not_own)
              .text() +
          "\n");
    return;
  }
  write(fmt::format("folder   {}\n", directory));
  write(fmt::format("holds    {}, {}\n", files_text(held.files), bytes_text(held.bytes)));
  write(fmt::format("limit    {}, {}\n", files_text(limits.files), bytes_text(limits.bytes)));
  if (plans > 0) write(fmt::format("beside   {}\n", plans_text(plans)));
  if (held.files > 0)
    write(fmt::format("used     the newest {}, the oldest {}\n", age_text(held.newest),
                      age_text(held.oldest)));
  if (!not_own.empty())
    write(
        fmt::format("not used {}\n  fix: chmod 700 it, or name another folder in "
                    "ANNEAL_CACHE_DIR\n",
                    not_own));
}

void show_removed(const KernelFolder::Contents& removed, const std::string& directory, bool json,
                  int64_t limit) {
  if (json)
    return write(Json::object()
                     .set("directory", directory)
                     .set("removed_kernels", removed.files)
                     .set("removed_bytes", removed.bytes)
                     .set("limit_bytes", limit)
                     .text() +
                 "\n");
  write(fmt::format("removed {}, {}, from {}\n", files_text(removed.files),
                    bytes_text(removed.bytes), directory));
}

void set_limit(const std::string& directory, const std::string& text, bool json) {
  const std::optional<int64_t> bytes = parse_bytes(text);
  if (!bytes)
    throw UsageError(text.empty() ? "there is no number of bytes"
                                  : fmt::format("\"{}\" is no number of bytes", text),
                     "anneal cache limit 512M, or 536870912");
  if (!keep_cache_limit(directory, *bytes))
    throw UserError(fmt::format("cannot write to {}", directory),
                    "make it writable, or name another folder in ANNEAL_CACHE_DIR", {});
  const KernelFolderLimits limits = cache_limits(directory);
  if (!json) {
    write(fmt::format("the limit is {}\n", bytes_text(limits.bytes)));
    if (limits.bytes != *bytes) write("  as ANNEAL_CACHE_LIMIT says, which comes first\n");
  }
  show_removed(KernelFolder(directory, limits).make_room(), directory, json, limits.bytes);
}

}  // namespace

void cache(const CacheOptions& options) {
  if (std::ranges::count(kActions, options.action) == 0)
    fail_unknown("action", options.action, kActions);
  if (options.action != "limit" && !options.bytes.empty())
    throw UsageError(fmt::format("cache {} takes no \"{}\"", options.action, options.bytes),
                     "anneal cache limit BYTES sets the limit");
  const std::string directory = directory_or_fail();
  if (options.action == "show") return show(directory, options.json);
  if (options.action == "limit") return set_limit(directory, options.bytes, options.json);
  const KernelFolderLimits limits = cache_limits(directory);
  const int64_t plans = plans_of(directory).clear().files;
  if (plans > 0 && !options.json) write(fmt::format("removed {}\n", plans_text(plans)));
  show_removed(KernelFolder(directory, limits).clear(), directory, options.json, limits.bytes);
}

}  // namespace anneal::cli
