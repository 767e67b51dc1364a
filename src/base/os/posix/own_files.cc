// Each folder and file is looked at after it was opened, by its descriptor, and the next one is
// opened from there: nobody can exchange them in between.
#include "base/os/own_files.h"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace anneal {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

constexpr time_t kSecondsBetweenMarks = 3600;  // each one is a write to the disk
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kPlain = O_RDONLY | O_NONBLOCK | O_CLOEXEC;  // a pipe must not make us wait

std::string why_not_own(const struct stat& status) {
  if (status.st_uid != ::geteuid()) return fmt::format("belongs to user {}", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("can be written to by others, its mode is {:04o}", status.st_mode & 07777);
  return "";
}

// The same of one that was opened, with its path; empty where it was not.
std::string check(const Descriptor& opened, const std::string& path, struct stat* status) {
  if (!opened.is_open() || ::fstat(opened.number(), status) != 0) return "";
  const std::string why = why_not_own(*status);
  return why.empty() ? "" : fmt::format("{} {}", path, why);
}

std::string check(const Descriptor& opened, const std::string& path) {
  struct stat status = {};
  return check(opened, path, &status);
}

bool read_all(int number, std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::read(number, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

bool make_own_folder(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path folder(path);
  std::filesystem::create_directories(folder.parent_path(), ignored);
  return ::mkdir(path.c_str(), S_IRWXU) == 0 || std::filesystem::is_directory(folder, ignored);
}

std::string why_not_own(const std::string& folder) {
  const Descriptor opened(::open(folder.c_str(), kFolder));
  struct stat status = {};
  if (!opened.is_open() || ::fstat(opened.number(), &status) != 0) return "";
  return why_not_own(status);
}

struct OwnFolder::Opened {
  std::string path;
  Descriptor folder{-1};
  std::string not_own;
};

OwnFolder::OwnFolder(const std::string& path, std::span<const std::string> way) {
  auto opened = std::make_unique<Opened>();
  opened->path = path;
  opened->folder = Descriptor(::open(path.c_str(), kFolder));  // the user may have made it a link
  opened->not_own = check(opened->folder, path);
  for (const std::string& name : way) {
    if (!opened->folder.is_open() || !opened->not_own.empty()) break;
    opened->path += "/" + name;
    opened->folder =
        Descriptor(::openat(opened->folder.number(), name.c_str(), kFolder | O_NOFOLLOW));
    opened->not_own = check(opened->folder, opened->path);
  }
  opened_ = std::move(opened);
}

OwnFolder::~OwnFolder() = default;

OwnFile OwnFolder::read(std::span<const std::string> way, uint64_t max_bytes) const {
  if (!opened_->not_own.empty()) return {std::nullopt, opened_->not_own};
  std::string path = opened_->path;
  Descriptor at(-1);
  struct stat status = {};
  for (size_t i = 0; i < way.size(); ++i) {
    const int from = i == 0 ? opened_->folder.number() : at.number();
    const int kind = i + 1 < way.size() ? kFolder : kPlain;
    path += "/" + way[i];
    if (from < 0) return {};
    at = Descriptor(::openat(from, way[i].c_str(), kind | O_NOFOLLOW));
    if (std::string not_own = check(at, path, &status); !not_own.empty())
      return {std::nullopt, std::move(not_own)};
  }
  if (!at.is_open() || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) > max_bytes)
    return {};
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  if (!read_all(at.number(), bytes)) return {};
  if (::time(nullptr) - status.st_mtime > kSecondsBetweenMarks) ::futimens(at.number(), nullptr);
  return {std::move(bytes), ""};
}

}  // namespace anneal
