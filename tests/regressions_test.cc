// Programs that once went wrong, as text: tests/regressions/*.ir. Each runs in every way, with
// every pass and transformation left out, and is compared with the interpreter.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "graph_runs.h"
#include "ir/print.h"

using namespace anneal;

namespace {

std::vector<std::filesystem::path> regressions() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ANNEAL_SOURCE_DIR) + "/tests/regressions"))
    if (entry.path().extension() == ".ir") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

TEST_CASE("regressions: programs that once went wrong") {
  const std::vector<std::filesystem::path> paths = regressions();
  CHECK(!paths.empty());
  for (const std::filesystem::path& path : paths) {
    Graph graph;
    GraphScope scope(graph);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const auto read = parse(text.str());
    if (const auto* error = std::get_if<ParseError>(&read)) {
      FAIL_CHECK(path.filename().string() << ":" << error->line << ": " << error->message);
      continue;
    }
    const GraphRuns runs(std::get<std::vector<NodeRef>>(read));
    for (const Toggle& toggle : schedule_toggles()) {
      const std::string failure = runs.check_bodies(toggle);
      CHECK_MESSAGE(failure.empty(), path.filename().string()
                                         << " " << toggle.text() << ": " << failure);
    }
    for (const Toggle& toggle : lower_toggles()) {
      const Toggle& schedule = schedule_toggles()[1];  // eagerly
      const std::string program = runs.check_programs(schedule, toggle),
                        code = runs.check_code(schedule, toggle);
      CHECK_MESSAGE(program.empty(), path.filename().string()
                                         << " lowered " << toggle.text() << ": " << program);
      CHECK_MESSAGE(code.empty(), path.filename().string()
                                      << " compiled " << toggle.text() << ": " << code);
    }
  }
}
