// A folder that is gone after the test.
#pragma once

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace anneal::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    path_ = (std::filesystem::temp_directory_path() / fmt::format("anneal-test-{:08x}", random()))
                .string();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

  // Those below it, too. Others may add and remove some meanwhile.
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    std::error_code error;
    std::filesystem::recursive_directory_iterator at(path_, error);
    for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error))
      if (std::error_code gone; !at->is_directory(gone)) paths.push_back(at->path().string());
    std::ranges::sort(paths);
    return paths;
  }

 private:
  std::string path_;
};

}  // namespace anneal::testing
