// posix_spawn and not fork: other threads of this process may hold locks.
#include "cli/bench/line_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace anneal::cli {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};  // read, write
  Pipe() {
    if (pipe(ends) != 0) return;
    for (int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// This process's variables with those given in place of equal names.
std::vector<std::string> environment_with(const LineProcess::Settings& settings) {
  std::vector<std::string> all;
  for (const auto& [name, value] : settings) all.push_back(fmt::format("{}={}", name, value));
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : settings) replaced |= text.substr(0, text.find('=')) == name;
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command, const Settings& environment) {
  Pipe input, output;
  if (input.ends[0] >= 0 && output.ends[0] >= 0) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
    std::vector<std::string> arguments = command, variables = environment_with(environment);
    pid_t process = -1;
    if (posix_spawnp(&process, command[0].c_str(), &actions, nullptr, pointers(arguments).data(),
                     pointers(variables).data()) == 0)
      process_ = process;
    posix_spawn_file_actions_destroy(&actions);
  }
  for (int end : {input.ends[0], output.ends[1]})
    if (end >= 0) close(end);
  to_ = input.ends[1];
  from_ = output.ends[0];
  if (process_ < 0) stop();
}

LineProcess::~LineProcess() { stop(); }

void LineProcess::stop() {
  for (int* end : {&to_, &from_})
    if (int open_end = std::exchange(*end, -1); open_end >= 0) close(open_end);
  if (process_ < 0) return;
  kill(process_, SIGKILL);  // it keeps nothing that could be lost
  waitpid(std::exchange(process_, -1), nullptr, 0);
}

bool LineProcess::send(std::string_view line) const {
  std::string text = std::string(line) + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(to_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

std::optional<std::string> LineProcess::receive(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    if (const size_t newline = received_.find('\n'); newline != std::string::npos) {
      std::string line = received_.substr(0, newline);
      received_.erase(0, newline + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return {};
    pollfd wanted{from_, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return {};
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t count = read(from_, buffer, sizeof buffer);
    if (count <= 0) return {};
    received_.append(buffer, static_cast<size_t>(count));
  }
}

std::optional<std::string> LineProcess::ask(std::string_view line, double seconds) {
  if (process_ < 0) return {};
  if (send(line))
    if (std::optional<std::string> answer = receive(seconds)) return answer;
  stop();
  return {};
}

std::filesystem::path program_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : program.parent_path();
}

}  // namespace anneal::cli
