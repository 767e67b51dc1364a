#include "child_process.h"

#include <csignal>
#include <utility>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace anneal {

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  id_ = fork();
  REQUIRE(id_ >= 0);
  if (id_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  output_ = fdopen(ends[0], "r");
  REQUIRE(output_ != nullptr);
}

ChildProcess::~ChildProcess() {
  std::fclose(output_);
  if (id_ < 0) return;
  signal(SIGKILL);
  wait();
}

std::optional<std::string> ChildProcess::line() {
  std::string text;
  for (int c = 0; (c = std::fgetc(output_)) != EOF;) {
    if (c == '\n') return text;
    text += static_cast<char>(c);
  }
  return {};
}

void ChildProcess::signal(int number) const { kill(id_, number); }

int ChildProcess::wait() {
  int status = 0;
  waitpid(std::exchange(id_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace anneal
