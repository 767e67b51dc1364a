// Each folder and file is looked at after it was opened, by its descriptor, and the next one is
// opened from there: nobody can exchange them in between.
#include "base/own_files.h"

#include <cerrno>
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

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kPlain = O_RDONLY | O_NONBLOCK | O_CLOEXEC;  // a pipe must not make us wait

std::string why_not_own(const struct stat& status) {
  if (status.st_uid != ::geteuid()) return fmt::format("belongs to user {}", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("can be written to by others, its mode is {:04o}", status.st_mode & 07777);
  return "";
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

OwnFile read_own_file(const std::string& folder, std::span<const std::string> way,
                      uint64_t max_bytes) {
  std::string path = folder;
  Descriptor at(::open(path.c_str(), kFolder));  // the user may have made it a link
  struct stat status = {};
  for (size_t i = 0;; ++i) {
    if (!at.is_open() || ::fstat(at.number(), &status) != 0) return {};
    if (const std::string why = why_not_own(status); !why.empty())
      return {std::nullopt, fmt::format("{} {}", path, why)};
    if (i == way.size()) break;
    path += "/" + way[i];
    at = Descriptor(::openat(at.number(), way[i].c_str(),
                             (i + 1 < way.size() ? kFolder : kPlain) | O_NOFOLLOW));
  }
  if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) > max_bytes) return {};
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  if (!read_all(at.number(), bytes)) return {};
  ::futimens(at.number(), nullptr);
  return {std::move(bytes), ""};
}

}  // namespace anneal
