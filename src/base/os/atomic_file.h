// A file that appears whole or not at all: written beside its place, brought to the disk, renamed.
// What a killed process left of an earlier try is removed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/os/temporary_file.h"

namespace anneal {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // without commit() nothing remains

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Whether everything is on the disk under the path. Then the old file, if any, is gone.
  bool commit();
  // Why it failed, once something did: "no space left on device".
  const std::string& error() const { return error_; }

 private:
  void fail(int number);

  std::string path_, error_;
  std::optional<TemporaryFile> file_;
};

}  // namespace anneal
