#include "base/os/files.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/os/temporary_file.h"

namespace anneal {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool folder_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

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

bool write_file_atomically(const std::string& path, std::string_view bytes, unsigned mode) {
  std::optional<TemporaryFile> file(std::in_place, path, mode);
  if (file->error() == ENOENT) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    file.emplace(path, mode);
  }
  if (!file->stream()) return false;
  return std::fwrite(bytes.data(), 1, bytes.size(), file->stream()) == bytes.size() &&
         file->commit(false);
}

double seconds_since(const FileEntry& entry) {
  using Clock = std::filesystem::file_time_type::clock;
  const Clock::time_point then{Clock::duration(entry.modified)};
  return std::chrono::duration<double>(Clock::now() - then).count();
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

}  // namespace anneal
