// Files that nobody but this user can have put there. What will be executed is read from such files
// alone. Must not know what is in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace anneal {

// Makes a folder that is this user's alone, unless there is one. False where there is none then.
bool make_own_folder(const std::string& path);

// Why others could have written what is in a folder: "belongs to user 7"; empty when they cannot,
// or where there is none.
std::string why_not_own(const std::string& folder);

struct OwnFile {
  std::optional<std::string> bytes;
  std::string not_own;  // the folder or file that is not, and why: "/tmp/x belongs to user 7"
};
// A file below a folder, by the names on the way to it. The folder, those on the way and the file
// must be this user's, and nobody else may write to them. The file is marked as used now: see
// FileEntry::modified.
OwnFile read_own_file(const std::string& folder, std::span<const std::string> way,
                      uint64_t max_bytes);

}  // namespace anneal
