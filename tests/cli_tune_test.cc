// anneal tune and train --tune, as a user runs them.
#include <csignal>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "child_process.h"
#include "cli_runner.h"
#include "environment_scope.h"
#include "temporary_folder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// Budgets are for busy machines: a search ends when there are no more candidates.
struct Surroundings {
  TemporaryFolder folder;
  EnvironmentScope directory{"ANNEAL_CACHE_DIR", folder.path()}, on{"ANNEAL_CACHE", "1"},
      device{"ANNEAL_DEVICE", "cpu"};

  std::vector<std::string> plans() const {
    std::vector<std::string> found = folder.files();
    std::erase_if(found, [](const std::string& path) { return !path.ends_with(".plan"); });
    return found;
  }
};

}  // namespace

TEST_CASE("cli: tune searches, and finds everything the second time") {
  const Surroundings here;
  const Json first = json_of("tune mlp --forward --budget 300s --threads 1");
  CHECK(first["tried"] > 0);
  CHECK(first["left"] == 0);
  CHECK(first["known"] == 0);
  const size_t kernels = first["kernels"].size();
  CHECK(kernels > 0);
  CHECK(here.plans().size() == kernels);
  for (const Json& kernel : first["kernels"]) {
    CHECK(kernel["wrong"] == 0);
    CHECK(kernel["now_ns"] <= kernel["before_ns"]);
  }
  const Json second = json_of("tune mlp --forward --budget 300s --threads 1");
  CHECK(second["tried"] == 0);
  CHECK(second["known"] == kernels);
  CHECK(second["seconds"] < 30);

  const std::string shown = anneal_run("cache").output;
  CHECK(contains(shown, fmt::format("beside   {} tuned plan", kernels)));

  // A program runs with what was found, damaged or not.
  const std::string run = "kernels mlp --forward --time";
  CHECK_FALSE(contains(with_errors(run).output, "notice"));
  for (const std::string& path : here.plans()) std::ofstream(path, std::ios::app) << "x";
  const Run damaged = with_errors(run);
  CHECK(damaged.code == 0);
  CHECK(contains(damaged.output, "notice: a tuned plan on disk is damaged and is not used"));

  CHECK(contains(anneal_run("cache clear").output, "tuned plan"));
  CHECK(here.plans().empty());
}

// Drivers that compute on the CPU take seconds to compile a candidate: some kernels are left.
TEST_CASE("cli: tune searches on a GPU, and finds what it kept the second time") {
  const Surroundings here;
  const Json first = json_of("tune mlp --forward --budget 8s --device webgpu");
  CHECK(first["tried"] > 0);
  CHECK(first["known"] == 0);
  for (const Json& kernel : first["kernels"]) {
    CHECK(kernel["wrong"] == 0);
    CHECK(kernel["now_ns"] <= kernel["before_ns"]);
  }
  const size_t found = here.plans().size();
  CHECK(found > 0);
  const Json second = json_of("tune mlp --forward --budget 0.01s --device webgpu");
  CHECK(second["tried"] == 0);
  CHECK(second["known"] == found);
  CHECK(contains(with_errors("kernels mlp --forward --plan --device webgpu").output, "tuned: "));
  CHECK(json_of("tune mlp --forward --budget 0.01s --device cpu")["known"] == 0);
}

TEST_CASE("cli: a search that is killed leaves plans that work") {
  const Surroundings here;
  {
    const ChildProcess search({program_path(), "tune", "mlp", "--budget", "600s"});
    for (int i = 0; i < 1800 && here.plans().empty(); ++i) shell("sleep 0.1");
    search.signal(SIGKILL);
  }
  const size_t found = here.plans().size();
  CHECK(found > 0);
  CHECK_FALSE(contains(with_errors("kernels mlp --time").output, "notice"));
  CHECK(json_of("tune mlp --budget 0.01s")["known"] == found);
}

TEST_CASE("cli: train --tune trains as ever, and says what it found") {
  const Surroundings here;
  const Run run = with_errors(
      "train mlp --data digits --width 64 --batch 64 --steps 3 --plain --tune --budget 20s");
  CHECK(run.code == 0);
  CHECK(contains(run.output, "tuned: "));
  CHECK(contains(run.output, "done after 3 steps"));
  if (!contains(run.output, "tuned: 0 kernels")) CHECK(here.plans().size() > 0);
}

TEST_CASE("cli: what tune does not take") {
  const Surroundings here;
  CHECK(contains(with_errors("tune nothing").output, "there is no program 'nothing'"));
  for (const char* budget : {"never", "0s", "-1s", "1h", "1e9", "nan", "inf"})
    CHECK(contains(with_errors(fmt::format("tune mlp --budget={}", budget)).output,
                   "which is no time to search in"));
  CHECK(contains(with_errors("train mlp --budget 3s").output, "--budget requires --tune"));
  CHECK(contains(with_errors("tune mlp --device interpreter").output, "makes no kernels"));
  const EnvironmentScope off("ANNEAL_CACHE", "0");
  CHECK(contains(with_errors("tune mlp").output, "what is found has no place"));
}
