// Command lines and environments that make no sense, and what people are told.
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cli_runner.h"
#include "environment_scope.h"

using namespace anneal;

namespace {

constexpr const char* kSmall = "train nanogpt --layers 1 --width 16 --heads 2 --block 8 --batch 2";

size_t columns(const std::string& line) {  // of UTF-8
  size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace

TEST_CASE("cli mistakes: help is in lines of 80 columns, in words of ours") {
  for (const char* command : {"", "train", "run", "sample", "graph", "explain", "kernels", "bench",
                              "doctor", "cache", "help"}) {
    CAPTURE(command);
    const Run help = anneal_run(fmt::format("help {}", command));
    CHECK(help.code == 0);
    std::istringstream lines(help.output);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(columns(line) <= 80, line);
    for (const char* foreign : {"INT", "FLOAT", "UINT", "TEXT:", " in [", "REQUIRED", "Excludes"})
      CHECK_FALSE(contains(help.output, foreign));
  }
  const std::string train = anneal_run("help train").output;
  CHECK(contains(train, "usage: anneal train MODEL [options]\n"));
  CHECK(contains(train, "\n  --steps N           in all, with those of --resume\n"));
  CHECK(contains(train, "\n  --lr RATE "));
  CHECK(contains(train, "\n  --save PATH "));
  CHECK(contains(train, "\nexample: anneal train mlp "));
}

TEST_CASE("cli mistakes: whole numbers may be written as people write them") {
  for (const auto& [text, steps] : {std::pair{"2", 2}, {"2e0", 2}, {"0.3e1", 3}, {"+3", 3}}) {
    CAPTURE(text);
    const Run run = anneal_run(fmt::format("{} --steps {}", kSmall, text));
    CHECK(run.code == 0);
    CHECK(contains(run.output, fmt::format("done after {} steps", steps)));
  }
  for (const char* text : {"1.5", "1e-1", "1e400", "0x10", "2 ", "", "two"}) {
    CAPTURE(text);
    const Run run = with_errors(fmt::format("{} --steps '{}'", kSmall, text));
    CHECK(run.code == 2);
    CHECK(contains(run.output, "--steps must be a whole number from 0 to 1099511627776, got"));
  }
}

TEST_CASE("cli mistakes: a variable of the environment that means nothing is named") {
  struct Row {
    const char *name, *value, *command, *says;
  };
  for (const Row& row : {Row{"ANNEAL_THREADS", "many", "train mlp --data digits --steps 1",
                             "ANNEAL_THREADS must be a whole number from 1 to 1024, got \"many\""},
                         Row{"ANNEAL_THREADS", "0", "run mlp --data digits",
                             "ANNEAL_THREADS must be a whole number from 1 to 1024, got \"0\""},
                         Row{"ANNEAL_DEVICE", "gpu", "kernels mlp",
                             "there is no device \"gpu\", which ANNEAL_DEVICE names"},
                         Row{"ANNEAL_CACHE", "off", "train mlp --data digits --steps 1",
                             "ANNEAL_CACHE must be 0 or 1, got \"off\""},
                         Row{"ANNEAL_POISON", "on", "train mlp --data digits --steps 1",
                             "ANNEAL_POISON must be 0 or 1, got \"on\""},
                         Row{"ANNEAL_WEBGPU_TILES", "both", "kernels mlp --device webgpu",
                             "ANNEAL_WEBGPU_TILES must be gpu or cpu, got \"both\""}}) {
    CAPTURE(row.name);
    const EnvironmentScope scope(row.name, row.value);
    const Run run = with_errors(row.command);
    CHECK(run.code == 2);
    CHECK_MESSAGE(contains(run.output, row.says), run.output);
    CHECK(contains(run.output, "hint: "));
  }
}

TEST_CASE("cli mistakes: what --resume is told otherwise than the checkpoint is said") {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("anneal-resume-{}", getpid())).string();
  REQUIRE(anneal_run(fmt::format("{} --steps 2 --save {}", kSmall, file)).code == 0);
  const std::string again = fmt::format("train nanogpt --steps 3 --resume {}", file);
  const std::string plain = anneal_run(again).output;
  CHECK_FALSE(contains(plain, "the checkpoint says"));
  CHECK_FALSE(
      contains(anneal_run(again + " --batch 2 --seed 1 --lr 0.001").output, "the checkpoint says"));
  const std::string other = anneal_run(again + " --batch 4 --seed 9 --lr 0.5").output;
  CHECK(contains(other, "--batch is 4 from here on, the checkpoint says 2\n"));
  CHECK(contains(other, "--seed is 9 from here on, the checkpoint says 1\n"));
  CHECK(contains(other, "--lr is 0.5 from here on, the checkpoint says 0.001\n"));

  const std::string json = anneal_run(again + " --seed 9 --json").output;
  const Json first = Json::parse(json.substr(0, json.find('\n')));
  REQUIRE(first["changed"].size() == 1);
  CHECK(first["changed"][0]["option"] == "--seed");
  CHECK(first["changed"][0]["holds"] == "9");
  CHECK(first["changed"][0]["checkpoint"] == "1");
  std::filesystem::remove(file);
}
