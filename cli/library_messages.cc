#include "cli/library_messages.h"

#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "base/debug.h"

namespace anneal::cli {

MutedLibraries::MutedLibraries() {
  if (debugs(Debug::Plans)) return;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  std::fflush(stderr);
  kept_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (kept_ >= 0) dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

MutedLibraries::~MutedLibraries() {
  if (kept_ < 0) return;
  std::fflush(stderr);
  dup2(kept_, STDERR_FILENO);
  close(kept_);
}

}  // namespace anneal::cli
