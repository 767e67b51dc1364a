// ANNEAL_DEBUG and --debug: what is said of compiling and running, and only where it is asked for.
#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli_runner.h"
#include "environment_scope.h"

using namespace anneal;

namespace {

constexpr const char* kTrain =
    "train nanogpt --layers 1 --width 16 --heads 2 --block 8 --batch 2 --steps 3 --log-every 1";

// The lines of standard error that begin with a word.
std::vector<std::string> lines_of(const Run& run, const std::string& word) {
  std::vector<std::string> lines;
  std::istringstream text(run.output);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(word + " ")) lines.push_back(line);
  return lines;
}

Run errors_of(const std::string& arguments) { return anneal_run(arguments + " 2>&1 >/dev/null"); }

}  // namespace

TEST_CASE("debug: nothing is said unless it is asked for, and results stay on standard output") {
  CHECK(errors_of(kTrain).output.empty());
  CHECK(errors_of(fmt::format("{} --debug 0", kTrain)).output.empty());
  const Run debugged = anneal_run(fmt::format("{} --debug 3 2>/dev/null", kTrain));
  CHECK(debugged.code == 0);
  for (const char* word : {"plan", "kernel", "pass"}) CHECK(lines_of(debugged, word).empty());
}

TEST_CASE("debug 1: a line for each program that is compiled: key, kernels, bytes, time") {
  const Run run = errors_of(fmt::format("{} --debug 1", kTrain));
  const std::vector<std::string> plans = lines_of(run, "plan");
  REQUIRE(plans.size() >= 2);  // the step, and the loss that is looked at in the end
  const std::regex form(
      "plan [0-9a-f]{32} on cpu: [0-9]+ kernels, [0-9]+ bodies, [0-9]+ bytes of inputs, [0-9]+ of "
      "results, [0-9]+ of temporaries, [0-9]+\\.[0-9] ms");
  for (const std::string& line : plans) {
    CAPTURE(line);
    CHECK(std::regex_match(line, form));
  }
  CHECK(lines_of(run, "kernel").empty());
  CHECK(lines_of(run, "pass").empty());
  // The same programs in another process, whatever it is told to show.
  const std::vector<std::string> again =
      lines_of(errors_of(fmt::format("{} --debug 2", kTrain)), "plan");
  REQUIRE(again.size() == plans.size());
  for (size_t i = 0; i < plans.size(); ++i)
    CHECK(again[i].substr(0, again[i].find(" results")) ==
          plans[i].substr(0, plans[i].find(" results")));
}

TEST_CASE("debug 2: kernels with their times, in the first two runs of a plan") {
  const Run run = errors_of(fmt::format("{} --debug 2", kTrain));
  // After a plan's line, and wherever it is found again: its kernels in order, then their sum.
  size_t plans = 0, runs = 0, kernels = 0;
  std::istringstream text(run.output);
  for (std::string line; std::getline(text, line);) {
    CAPTURE(line);
    if (line.starts_with("plan ")) ++plans;
    if (line.starts_with("kernel ")) {
      CHECK(std::stoul(line.substr(7)) == kernels++);
      CHECK(std::regex_search(line, std::regex(" [0-9]+\\.[0-9] us")));
    } else if (line.starts_with("kernels took")) {
      ++runs;
      kernels = 0;
    }
  }
  CHECK(runs > plans);  // the step runs three times, and shows two
  CHECK(runs <= 2 * plans);
}

TEST_CASE("debug 3: every pass with its time, what it changed and the rules that fired") {
  const Run run = errors_of(fmt::format("{} --debug 3", kTrain));
  const std::vector<std::string> passes = lines_of(run, "pass");
  auto has = [&](const char* form) {
    return std::ranges::any_of(
        passes, [&](const std::string& line) { return std::regex_search(line, std::regex(form)); });
  };
  CHECK(has("^pass simplify     rules .* ms  [0-9]+ -> [0-9]+ nodes; [a-z-]+/[a-z0-9-]+ [0-9]+"));
  CHECK(has("^pass fusion       fuse-rows .* ms  .* fragments"));
  CHECK(has("^pass kernel body  math .* ms  .* axes; .*math/[a-z0-9-]+ [0-9]+"));
  CHECK(has("^pass kernel body  merge-axes .* index-[a-z]+/[a-z-]+ [0-9]+"));
  CHECK(has("^pass memory       memory-plan .* ms  [0-9]+ -> [0-9]+ bytes"));
  CHECK(has("^pass plan         emit .* instructions"));
  CHECK(has(" ms  unchanged$"));
  // Where nothing runs, too.
  CHECK(!lines_of(errors_of("kernels mlp --forward --debug 3"), "pass").empty());
  CHECK(!lines_of(errors_of("explain softmax --debug 3"), "pass").empty());
}

TEST_CASE("debug: ANNEAL_DEBUG says it for any program, and the option comes first") {
  {
    const EnvironmentScope debug("ANNEAL_DEBUG", "1");
    CHECK(!lines_of(errors_of(kTrain), "plan").empty());
    CHECK(errors_of(fmt::format("{} --debug 0", kTrain)).output.empty());
  }
  const EnvironmentScope debug("ANNEAL_DEBUG", "4");
  const Run wrong = errors_of(kTrain);
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.output, "ANNEAL_DEBUG must be a whole number from 0 to 3, got \"4\""));
  const Run option = errors_of(fmt::format("{} --debug 4", kTrain));
  CHECK(option.code == 2);
  CHECK(contains(option.output, "--debug"));
}
