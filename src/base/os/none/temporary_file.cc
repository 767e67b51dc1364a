// Where there are no files: none can be opened.
#include "base/os/temporary_file.h"

#include <cerrno>

namespace anneal {

TemporaryFile::TemporaryFile(std::string path, unsigned) : path_(std::move(path)), error_(ENOSYS) {}

TemporaryFile::~TemporaryFile() = default;

bool TemporaryFile::commit(bool) { return false; }

void remove_abandoned(const std::string&) {}
void remove_abandoned_in(const std::string&) {}

}  // namespace anneal
