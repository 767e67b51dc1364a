#include "base/atomic_file.h"

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
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

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), file_(nullptr) {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    error_ = "it is a directory";
    return;
  }
  std::random_device random;
  temporary_ = fmt::format("{}.{:08x}{:08x}.tmp", path_, random(), random());
  file_ = std::fopen(temporary_.c_str(), "wbx");
  if (!file_) fail();
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  std::fclose(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail() {
  if (error_.empty()) error_ = std::generic_category().message(errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!error_.empty() || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail();
}

bool AtomicFile::commit() {
  if (!error_.empty()) return false;
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail();
  if (std::fclose(file_) != 0) fail();
  file_ = nullptr;
  if (error_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  if (!error_.empty()) {
    ::unlink(temporary_.c_str());
    return false;
  }
  sync_folder(path_);
  return true;
}

}  // namespace anneal
