// A file on its way to another's place. It is locked as long as whoever writes it lives, so what a
// killed process left can be told from what is being written. Must not know what is in it.
#pragma once

#include <cstdio>
#include <string>

namespace anneal {

class TemporaryFile {
 public:
  // Beside `path`, for which it is meant; see error(). `mode`: who may read and write it, within
  // what the process allows.
  explicit TemporaryFile(std::string path, unsigned mode = 0666);
  ~TemporaryFile();  // without commit() nothing remains
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::FILE* stream() const { return file_; }
  // The number of what failed to open or to commit, as errno; 0: nothing.
  int error() const { return error_; }
  // Takes the place of `path`; `durable`: once it is on the disk.
  bool commit(bool durable);

 private:
  bool open(unsigned mode);
  bool fail();
  void close();

  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
  int error_ = 0;
};

// Removes those meant for `path` whose writer is gone.
void remove_abandoned(const std::string& path);
// The same for any file of a folder.
void remove_abandoned_in(const std::string& folder);

}  // namespace anneal
