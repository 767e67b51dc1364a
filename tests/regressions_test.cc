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
#include "runtime/webgpu/webgpu_device.h"

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

bool has_f64(std::span<const NodeRef> roots) {
  return std::ranges::any_of(topological_order(roots),
                             [](NodeRef node) { return node->dtype == DType::F64; });
}

}  // namespace

TEST_CASE("regressions: programs that once went wrong") {
  const std::vector<std::filesystem::path> paths = regressions();
  CHECK(!paths.empty());
  WebGpuOptions tiles_of_gpu = WebGpuOptions::from_environment();
  tiles_of_gpu.tiles = WebGpuOptions::Tiles::Gpu;
  const std::unique_ptr<Device> gpus[] = {make_webgpu_device(), make_webgpu_device(tiles_of_gpu)};
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
    const auto& roots = std::get<std::vector<NodeRef>>(read);
    const GraphRuns runs(roots);
    for (const Toggle& toggle : schedule_toggles()) {
      const std::string failure = runs.check_bodies(toggle);
      CHECK_MESSAGE(failure.empty(), path.filename().string()
                                         << " " << toggle.text() << ": " << failure);
    }
    for (const std::unique_ptr<Device>& gpu : gpus) {
      if (has_f64(roots)) break;
      const std::string failure = runs.check_on(*gpu, schedule_toggles()[1]);
      CHECK_MESSAGE(failure.empty(), path.filename().string() << " on a GPU: " << failure);
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
