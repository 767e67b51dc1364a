// PyTorch as a peer: scripts run with a Python that has it, files go through a folder of their own.
#pragma once

#include <filesystem>
#include <string>

namespace anneal {

// Removed in the end.
struct PeerFolder {
  std::filesystem::path path;
  PeerFolder();
  ~PeerFolder();
  PeerFolder(const PeerFolder&) = delete;
  PeerFolder& operator=(const PeerFolder&) = delete;
};

// Runs a script of the source tree with these arguments, as a shell reads them. False where no
// Python here has PyTorch, which a script says by ending with status 77; a test that fails with
// another one has failed.
bool run_torch(const std::string& script, const std::string& arguments);

}  // namespace anneal
