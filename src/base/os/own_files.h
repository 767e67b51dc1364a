// Files that nobody but this user can have put there. What will be executed is read from such files
// alone. Must not know what is in them.
#pragma once

#include <cstdint>
#include <memory>
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
// A folder, opened. It and those on the way to what is read must be this user's, and nobody else
// may write to them.
class OwnFolder {
 public:
  OwnFolder(const std::string& path, std::span<const std::string> way);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  // A file below it, by the names on the way to it. It is marked as used, to the hour: see
  // FileEntry::modified.
  OwnFile read(std::span<const std::string> way, uint64_t max_bytes) const;

 private:
  struct Opened;
  std::unique_ptr<const Opened> opened_;
};

}  // namespace anneal
