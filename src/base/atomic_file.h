// A file that appears whole or not at all: written beside its place, brought to the disk, renamed.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace anneal {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();  // without commit() nothing remains
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Whether everything is on the disk under the path. Then the old file, if any, is gone.
  bool commit();
  // Why it failed, once something did: "no space left on device".
  const std::string& error() const { return error_; }

 private:
  void fail();  // with errno

  std::string path_, temporary_, error_;
  std::FILE* file_;
};

}  // namespace anneal
