#include "base/os/atomic_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace anneal {
namespace {

// The folder's entry is on the disk too.
void sync_folder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int number = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) return;
  ::fsync(number);  // some file systems have none for folders: the rename happened nonetheless
  ::close(number);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    error_ = "it is a directory";
    return;
  }
  remove_abandoned(path_);
  file_.emplace(path_);
  if (!file_->stream()) fail(file_->error());
}

void AtomicFile::fail(int number) {
  if (error_.empty()) error_ = std::generic_category().message(number);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!error_.empty() || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_->stream()) != bytes.size()) fail(errno);
}

bool AtomicFile::commit() {
  if (!error_.empty()) return false;
  if (!file_->commit(true)) {
    fail(file_->error());
    return false;
  }
  sync_folder(path_);
  return true;
}

}  // namespace anneal
