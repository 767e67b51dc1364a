// Where there are no files: none can be read, none is written.
#include "base/os/files.h"

namespace anneal {

bool file_exists(const std::string&) { return false; }
bool folder_exists(const std::string&) { return false; }
std::optional<std::string> read_file(const std::string&, uint64_t) { return std::nullopt; }
bool write_file_atomically(const std::string&, std::string_view, unsigned) { return false; }
double seconds_since(const FileEntry&) { return 0; }
std::vector<FileEntry> list_files(const std::string&, std::string_view) { return {}; }
bool remove_file(const std::string&) { return false; }

}  // namespace anneal
