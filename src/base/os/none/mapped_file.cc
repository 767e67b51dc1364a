// Where there are no files: opening one says so.
#include "base/os/mapped_file.h"

#include <utility>

namespace anneal {

std::variant<MappedFile, std::string> MappedFile::open(const std::string&) {
  return std::string("there are no files on this platform");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() = default;

}  // namespace anneal
