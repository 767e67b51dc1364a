#include "base/os/temporary_file.h"

#include <cerrno>
#include <filesystem>
#include <random>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace anneal {
namespace {

constexpr std::string_view kSuffix = ".tmp";
constexpr size_t kDigits = 16;

// Two processes never choose the same, not even a parent and its fork.
std::string unique_name(const std::string& path) {
  std::random_device random;
  return fmt::format("{}.{:08x}{:08x}{}", path, random(), random(), kSuffix);
}

// The name of the file it is meant for; empty where it is no name of ours.
std::string_view meant_for(std::string_view name) {
  constexpr size_t kAdded = 1 + kDigits + kSuffix.size();
  if (name.size() <= kAdded || !name.ends_with(kSuffix)) return "";
  const std::string_view added = name.substr(name.size() - kAdded);
  const bool ours =
      added[0] == '.' &&
      added.substr(1, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return ours ? name.substr(0, name.size() - kAdded) : "";
}

// Who gets the lock knows that the writer is gone. A writer that was about to take it finds that
// its file has no name any more.
void remove_if_abandoned(const std::string& path) {
  const int number = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (number < 0) return;
  struct stat status = {};
  if (::fstat(number, &status) == 0 && S_ISREG(status.st_mode) &&
      ::flock(number, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
  ::close(number);
}

template <typename Which>
void remove_abandoned_where(const std::filesystem::path& folder, Which which) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder.empty() ? "." : folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string_view target = meant_for(name);
    if (!target.empty() && which(target)) remove_if_abandoned(at->path().string());
  }
}

}  // namespace

TemporaryFile::TemporaryFile(std::string path, unsigned mode) : path_(std::move(path)) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i)
    if (open(mode) || error_ != 0) return;
  error_ = EAGAIN;
}

// False without an error: somebody took it for abandoned before it was locked.
bool TemporaryFile::open(unsigned mode) {
  temporary_ = unique_name(path_);
  const int number = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                            static_cast<mode_t>(mode));
  if (number < 0) return fail();
  file_ = ::fdopen(number, "wb");
  if (!file_) {
    ::close(number);
    return fail();
  }
  struct stat status = {};
  // Some file systems have no locks: there nothing is ever taken for abandoned.
  if (::flock(::fileno(file_), LOCK_EX) != 0 ||
      (::fstat(::fileno(file_), &status) == 0 && status.st_nlink > 0))
    return true;
  close();
  return false;
}

TemporaryFile::~TemporaryFile() {
  if (!file_) return;
  ::unlink(temporary_.c_str());
  close();
}

bool TemporaryFile::fail() {
  if (error_ == 0) error_ = errno;
  return false;
}

void TemporaryFile::close() {
  std::fclose(file_);
  file_ = nullptr;
}

bool TemporaryFile::commit(bool durable) {
  if (!file_) return false;
  const bool written = std::fflush(file_) == 0 && (!durable || ::fsync(::fileno(file_)) == 0) &&
                       // While it is still locked.
                       std::rename(temporary_.c_str(), path_.c_str()) == 0;
  if (!written) {
    fail();
    ::unlink(temporary_.c_str());
  }
  close();
  return written;
}

void remove_abandoned(const std::string& path) {
  const std::filesystem::path target(path);
  remove_abandoned_where(target.parent_path(),
                         [&](std::string_view name) { return name == target.filename().string(); });
}

void remove_abandoned_in(const std::string& folder) {
  remove_abandoned_where(folder, [](std::string_view) { return true; });
}

}  // namespace anneal
