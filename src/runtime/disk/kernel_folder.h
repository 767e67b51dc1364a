// Compiled kernels, or what else is kept for this user on disk, for any number of processes:
// bounded, the ones that were not used for longest go first. Must not know what a kernel is.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/key.h"
#include "base/os/files.h"

namespace anneal {

struct KernelFolderLimits {
  int64_t bytes = int64_t{512} << 20;
  int64_t files = 20'000;
};

// What is kept, in a folder of its own below the cache.
struct FolderContent {
  std::string_view folder = "kernels", suffix = ".kernel";
  std::string_view what = "compiled kernels";  // in messages
};

// $ANNEAL_CACHE_DIR, else $XDG_CACHE_HOME/anneal, else ~/.cache/anneal; ANNEAL_CACHE=0: none.
std::string default_cache_directory();
// What ANNEAL_CACHE_LIMIT says, else what was kept in the folder, else the default. An error where
// the variable is no number of bytes.
KernelFolderLimits cache_limits(const std::string& directory);
// Keeps it in the folder for every process to come.
bool keep_cache_limit(const std::string& directory, int64_t bytes);

// Any thread may call. A disk that cannot be written to is no error: nothing is kept then.
class KernelFolder {
 public:
  // Nothing is kept where `path` is empty.
  KernelFolder(std::string path, const KernelFolderLimits& limits,
               const FolderContent& content = {});

  // Marks them as used. What others could have written is not read: one notice says so.
  std::vector<std::optional<std::string>> read_all(std::span<const Key> keys);
  std::optional<std::string> read(const Key& key) { return std::move(read_all({&key, 1})[0]); }
  // Removes what is too much, once the process has counted what is there.
  void write(const Key& key, std::string_view bytes);

  struct Contents {
    int64_t files = 0, bytes = 0;
    double oldest = 0, newest = 0;  // seconds since they were used
  };
  Contents contents() const;
  // What was removed: all of them, and those beyond the limits.
  Contents clear();
  Contents make_room();
  // Why others could have written here, so that nothing is read; empty when they cannot.
  std::string not_own() const;

 private:
  std::string own() const { return path_ + "/" + std::string(content_.folder); }
  std::string name_of(const Key& key) const;
  std::vector<std::string> parts() const;  // its folders
  std::vector<FileEntry> list() const;
  void tell(const std::string& not_own);
  Contents remove_oldest(const KernelFolderLimits& limits);  // the lock is held

  std::string path_;
  KernelFolderLimits limits_;
  FolderContent content_;
  std::mutex mutex_;              // of what follows
  std::optional<Contents> held_;  // once it was counted
  bool told_ = false;
};

}  // namespace anneal
