// A program that is watched line by line and may be ended at any moment.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace anneal {

class ChildProcess {
 public:
  // The words of the command; the first is the program.
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();  // ends it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::optional<std::string> line();  // of its standard output; none at its end
  void signal(int number) const;
  int wait();  // its exit code, or 128 and the signal that ended it

 private:
  pid_t id_;
  std::FILE* output_;
};

}  // namespace anneal
