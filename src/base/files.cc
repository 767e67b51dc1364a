#include "base/files.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>

#include <fmt/format.h>

namespace anneal {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Two processes never choose the same, not even a parent and its fork.
std::string unique_name(const std::string& path) {
  std::random_device random;
  return fmt::format("{}.{:08x}{:08x}.tmp", path, random(), random());
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > max_bytes) return std::nullopt;
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return std::nullopt;
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  std::string bytes(size, '\0');
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return std::nullopt;
  return bytes;
}

bool write_file_atomically(const std::string& path, std::string_view bytes) {
  std::error_code error;
  const std::string temporary = unique_name(path);
  File file(std::fopen(temporary.c_str(), "wb"));
  if (!file) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    file.reset(std::fopen(temporary.c_str(), "wb"));
  }
  if (!file) return false;
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  written &= std::fclose(file.release()) == 0;
  if (written) std::filesystem::rename(temporary, path, error);
  if (written && !error) return true;
  remove_file(temporary);
  return false;
}

std::vector<FileEntry> list_files(const std::string& folder, std::string_view suffix) {
  std::vector<FileEntry> entries;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string path = at->path().string();
    std::error_code gone;  // another process may have removed it meanwhile
    if (!path.ends_with(suffix) || !at->is_regular_file(gone)) continue;
    const uintmax_t bytes = at->file_size(gone);
    const auto modified = at->last_write_time(gone).time_since_epoch().count();
    if (!gone) entries.push_back({path, bytes, static_cast<int64_t>(modified)});
  }
  return entries;
}

bool remove_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::remove(path, error) && !error;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace anneal
