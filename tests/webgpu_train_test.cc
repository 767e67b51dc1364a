// anneal train on WebGPU: the losses are the CPU's, a step moves its inputs and nothing else.
#include <cmath>
#include <sstream>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli_runner.h"

using namespace anneal;

namespace {

std::vector<Json> steps_of(const std::string& arguments) {
  const Run run = anneal_run(arguments + " --steps 50 --json");
  CHECK(run.code == 0);
  std::vector<Json> steps;
  std::istringstream text(run.output);
  for (std::string line; std::getline(text, line);)
    if (const Json json = Json::parse(line); json.contains("counters")) steps.push_back(json);
  return steps;
}

}  // namespace

// Small but for one, for a CPU plays the GPU; every kind of kernel of the large ones is there.
TEST_CASE("webgpu train: every model follows the CPU's losses") {
  for (const std::string arguments :
       {"train mlp --data digits", "train mlp --data digits --batch 16 --width 64",
        "train conv --data digits --batch 4 --width 4",
        "train dynmlp --data digits --batch 16 --width 32",
        "train nanogpt --layers 2 --width 32 --heads 2 --block 16 --batch 4"}) {
    CAPTURE(arguments);
    const std::vector<Json> expected = steps_of(arguments + " --device cpu");
    const std::vector<Json> got = steps_of(arguments + " --device webgpu");
    REQUIRE(got.size() == expected.size());
    REQUIRE(got.size() == 50);
    for (size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(double(got[i]["loss"]) - double(expected[i]["loss"])) < 1e-3);
      if (i == 0) continue;
      const Json& done = got[i]["counters"];
      CHECK(done["nodes_built"] == 0);
      CHECK(done["kernels_compiled"] == 0);
      CHECK(done["host_to_device_bytes"] == expected[i]["counters"]["host_to_device_bytes"]);
      CHECK(done["device_to_host_bytes"] == 4);
    }
  }
}
