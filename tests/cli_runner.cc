#include "cli_runner.h"

#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

namespace anneal {

std::string program_path() {
  if (const char* path = std::getenv("ANNEAL_PROGRAM")) return path;
#ifdef ANNEAL_PROGRAM
  return ANNEAL_PROGRAM;
#else
  return "anneal";
#endif
}

Run shell(const std::string& command) {
  Run run;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof buffer, pipe)) run.output.append(buffer, count);
  const int status = pclose(pipe);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

Run anneal_run(const std::string& arguments) {
  return shell(fmt::format("'{}' {}", program_path(), arguments));
}
Run with_errors(const std::string& arguments) { return anneal_run(arguments + " 2>&1"); }

Json json_of(const std::string& arguments) {
  const Run run = anneal_run(arguments + " --json");
  INFO(arguments);
  REQUIRE(run.code == 0);
  return Json::parse(run.output);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace anneal
