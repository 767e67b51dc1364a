#include "torch_peer.h"

#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace anneal {

PeerFolder::PeerFolder()
    : path(std::filesystem::temp_directory_path() / fmt::format("anneal-parity-{}", getpid())) {
  std::filesystem::create_directory(path);
}
PeerFolder::~PeerFolder() { std::filesystem::remove_all(path); }

bool run_torch(const std::string& script, const std::string& arguments) {
  constexpr int kNoPyTorch = 77;
  // Distributions give PyTorch to their own Python, which need not be the one found first.
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    const int status = std::system(  // NOLINT(concurrency-mt-unsafe)
        fmt::format("OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 {} -B '{}/{}' {} >&2", python,
                    ANNEAL_SOURCE_DIR, script, arguments)
            .c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoPyTorch) continue;
    REQUIRE(status == 0);
    return true;
  }
  return false;
}

}  // namespace anneal
