// What libraries for GPUs write on standard error by themselves: their words are for those who
// debug them, and only these (--debug 1) see them. What matters is said again in ours.
#pragma once

namespace anneal::cli {

// None are shown while it lives; nor is anything else that is written to standard error.
class MutedLibraries {
 public:
  MutedLibraries();
  ~MutedLibraries();
  MutedLibraries(const MutedLibraries&) = delete;
  MutedLibraries& operator=(const MutedLibraries&) = delete;

 private:
  int kept_ = -1;  // standard error as it was; -1: it is as it was
};

}  // namespace anneal::cli
