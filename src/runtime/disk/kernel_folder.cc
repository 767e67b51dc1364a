// Layout: kernels/ab/abcdef….kernel, by the first byte of the key. What a use changes is the time
// of modification, so finding the oldest needs no list of its own that processes would have to
// share.
#include "runtime/disk/kernel_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/notice.h"
#include "base/os/environment.h"
#include "base/os/own_files.h"
#include "base/os/temporary_file.h"

namespace anneal {
namespace {

constexpr std::string_view kLimitFile = "/kernels/limit";
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;
constexpr unsigned kOwnMode = 0600;

KernelFolder::Contents contents_of(std::span<const FileEntry> files) {
  KernelFolder::Contents all;
  for (const FileEntry& file : files) {
    const double age = seconds_since(file);
    all.oldest = all.files == 0 ? age : std::max(all.oldest, age);
    all.newest = all.files == 0 ? age : std::min(all.newest, age);
    ++all.files;
    all.bytes += static_cast<int64_t>(file.bytes);
  }
  return all;
}

bool is_within(const KernelFolder::Contents& held, const KernelFolderLimits& limits) {
  return held.bytes <= limits.bytes && held.files <= limits.files;
}

}  // namespace

// ---- where, and how much

std::string default_cache_directory() {
  if (environment_word("ANNEAL_CACHE", {"0", "1"}) == "0") return "";
  if (std::string chosen = environment("ANNEAL_CACHE_DIR"); !chosen.empty()) return chosen;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/anneal";
  }
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/anneal";
}

KernelFolderLimits cache_limits(const std::string& directory) {
  KernelFolderLimits limits;
  if (const std::optional<int64_t> given = environment_bytes("ANNEAL_CACHE_LIMIT")) {
    limits.bytes = *given;
  } else if (const std::optional<std::string> kept =
                 directory.empty() ? std::nullopt
                                   : read_file(directory + std::string(kLimitFile), 64)) {
    limits.bytes = parse_bytes(*kept).value_or(limits.bytes);
  }
  return limits;
}

bool keep_cache_limit(const std::string& directory, int64_t bytes) {
  return make_own_folder(directory) && make_own_folder(directory + "/kernels") &&
         write_file_atomically(directory + std::string(kLimitFile), fmt::format("{}\n", bytes),
                               kOwnMode);
}

// ---- the folder

KernelFolder::KernelFolder(std::string path, const KernelFolderLimits& limits,
                           const FolderContent& content)
    : path_(std::move(path)), limits_(limits), content_(content) {}

std::string KernelFolder::name_of(const Key& key) const {
  return to_text(key) + std::string(content_.suffix);
}

void KernelFolder::tell(const std::string& not_own) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(told_, true)) return;
  }
  notice(fmt::format("{} on disk are not used: {}", content_.what, not_own),
         "chmod 700 what is yours, or name a folder of your own in ANNEAL_CACHE_DIR");
}

std::string KernelFolder::not_own() const {
  for (const std::string& folder : {path_, own()})
    if (const std::string why = why_not_own(folder); !why.empty())
      return fmt::format("{} {}", folder, why);
  return "";
}

std::vector<std::optional<std::string>> KernelFolder::read_all(std::span<const Key> keys) {
  std::vector<std::optional<std::string>> files(keys.size());
  if (path_.empty()) return files;
  const OwnFolder folder(path_, std::array<std::string, 1>{std::string(content_.folder)});
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string name = name_of(keys[i]);
    OwnFile file = folder.read(std::array{name.substr(0, 2), name}, kMaxFileBytes);
    if (!file.not_own.empty()) tell(file.not_own);
    files[i] = std::move(file.bytes);
  }
  return files;
}

void KernelFolder::write(const Key& key, std::string_view bytes) {
  if (path_.empty()) return;
  const std::string name = name_of(key), part = own() + "/" + name.substr(0, 2);
  if (!make_own_folder(path_) || !make_own_folder(own()) || !make_own_folder(part)) return;
  if (const std::string why = not_own(); !why.empty()) return tell(why);
  if (!write_file_atomically(part + "/" + name, bytes, kOwnMode)) return;
  const std::lock_guard lock(mutex_);
  // Counted once, and after it was too much; what other processes add meanwhile they count.
  if (held_) {
    held_->bytes += static_cast<int64_t>(bytes.size());
    ++held_->files;
  }
  if (!held_ || !is_within(*held_, limits_)) remove_oldest(limits_);
}

std::vector<std::string> KernelFolder::parts() const {
  std::vector<std::string> folders;
  std::error_code error;
  std::filesystem::directory_iterator at(own(), error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error))
    if (std::error_code gone; at->is_directory(gone)) folders.push_back(at->path().string());
  return folders;
}

std::vector<FileEntry> KernelFolder::list() const {
  std::vector<FileEntry> files;
  for (const std::string& part : parts()) {
    std::vector<FileEntry> more = list_files(part, content_.suffix);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

KernelFolder::Contents KernelFolder::contents() const { return contents_of(list()); }

KernelFolder::Contents KernelFolder::remove_oldest(const KernelFolderLimits& limits) {
  for (const std::string& part : parts()) remove_abandoned_in(part);
  // Earlier versions had all of them side by side, and no longer read them.
  std::vector<FileEntry> removed = list_files(path_, content_.suffix);
  std::vector<FileEntry> files = list();
  held_ = contents_of(files);
  if (!is_within(*held_, limits)) {
    // More than needed, so that it is not needed again soon.
    const KernelFolderLimits low{limits.bytes - limits.bytes / 4, limits.files - limits.files / 4};
    std::ranges::sort(files, {}, [](const FileEntry& a) { return std::tie(a.modified, a.path); });
    size_t count = 0;
    for (; count < files.size() && !is_within(*held_, low); ++count) {
      held_->bytes -= static_cast<int64_t>(files[count].bytes);
      --held_->files;
    }
    removed.insert(removed.end(), files.begin(), files.begin() + static_cast<long>(count));
  }
  for (const FileEntry& file : removed) remove_file(file.path);
  return contents_of(removed);
}

KernelFolder::Contents KernelFolder::make_room() {
  const std::lock_guard lock(mutex_);
  return remove_oldest(limits_);
}

KernelFolder::Contents KernelFolder::clear() {
  const std::lock_guard lock(mutex_);
  const Contents removed = remove_oldest({0, 0});
  for (const std::string& part : parts()) remove_file(part);  // unless something is in it
  return removed;
}

}  // namespace anneal
