// Small files and folders, without exceptions: what fails answers with nothing or false.
// Must not know what is in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anneal {

bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);

// All of it, unless it is larger than `max_bytes`.
std::optional<std::string> read_file(const std::string& path, uint64_t max_bytes);

// Other processes see the old file or the new one, never a part. Makes the folder if need be.
// `mode`: who may read and write it, within what the process allows.
bool write_file_atomically(const std::string& path, std::string_view bytes, unsigned mode = 0666);

struct FileEntry {
  std::string path;
  uint64_t bytes = 0;
  int64_t modified = 0;  // grows with time
};

// How long ago that was.
double seconds_since(const FileEntry& entry);

// The plain files of a folder whose names end with `suffix`.
std::vector<FileEntry> list_files(const std::string& folder, std::string_view suffix);

bool remove_file(const std::string& path);

}  // namespace anneal
