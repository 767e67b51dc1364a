// What can be seen of programs is what runs: the step that `train` compiles is the one that graph,
// kernels and explain show, and a compiled function of a user's shows itself.
#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "cli_runner.h"
#include "error_text.h"
#include "models/training.h"

using namespace anneal;

namespace {

// Kernels of each program that a command compiles, by the program's key.
std::vector<std::pair<std::string, size_t>> plans_of(const std::string& arguments) {
  std::vector<std::pair<std::string, size_t>> plans;
  std::istringstream text(anneal_run(arguments + " --debug 1 2>&1 >/dev/null").output);
  const std::regex form("plan ([0-9a-f]{32}) on [a-z]+: ([0-9]+) kernels.*");
  std::smatch match;
  for (std::string line; std::getline(text, line);)
    if (std::regex_match(line, match, form)) plans.emplace_back(match[1], std::stoul(match[2]));
  return plans;
}

struct Descent {
  Tensor w = parameter("w", full({4, 3}, 0.5));
  Compiled<std::function<Tensor(const Tensor&)>> step = compile(
      [this](const Tensor& x) {
        const Tensor loss = mean(square(softmax(matmul(x, w)) - 0.25));
        const Tensor rate = 0.1 * grad(loss, {w})[0];
        record(w, w - rate);
        return loss;
      },
      {.name = "descent"});
};

}  // namespace

TEST_CASE("inspect: graph, kernels and explain show the very step that train runs") {
  for (const models::ModelRow& row : models::model_rows()) {
    const std::string name(row.name);
    CAPTURE(name);
    const Json graph = json_of("graph " + name), kernels = json_of("kernels " + name),
               explained = json_of("explain " + name);
    const std::string key = kernels["key"];
    CHECK(graph["key"] == key);
    CHECK(explained["key"] == key);
    const char* data = row.learns_text() ? "" : " --data digits";
    const auto trained = plans_of(fmt::format("train {} --steps 1{}", name, data));
    const auto step = std::ranges::find(trained, key, &std::pair<std::string, size_t>::first);
    REQUIRE(step != trained.end());
    CHECK(step->second == kernels["kernels"].size());
    CHECK(step->second == explained["kernels"]);
    // Another step is another program: it is not any key that is found.
    const auto other = plans_of(fmt::format("train {} --steps 1 --lr 0.5{}", name, data));
    CHECK(std::ranges::count(other, key, &std::pair<std::string, size_t>::first) == 0);
  }
}

TEST_CASE("inspect: what only the loss needs is a program of its own") {
  const Json step = json_of("kernels mlp"), forward = json_of("kernels mlp --forward");
  CHECK(step["key"] != forward["key"]);
  CHECK(forward["key"] == json_of("graph mlp --forward")["key"]);
  CHECK(forward["nodes"] < step["nodes"]);
}

TEST_CASE("inspect: what graph, kernels and explain compile is told by --debug") {
  const std::string key = json_of("kernels attention")["key"];
  for (const char* command : {"graph", "kernels", "explain"}) {
    CAPTURE(command);
    const auto plans = plans_of(fmt::format("{} attention", command));
    REQUIRE(plans.size() == 1);
    CHECK(plans[0].first == key);
  }
}

TEST_CASE("inspect: a compiled function shows its kernels and the passes that made them") {
  const DeviceScope cpu("cpu");
  Descent descent;
  CHECK(descent.step.kernels().empty());
  CHECK(descent.step.explain().empty());
  const Tensor x = full({5, 4}, 0.3);
  const double first = descent.step(x).item();

  const std::string kernels = descent.step.kernels(), explained = descent.step.explain();
  CHECK(std::regex_search(kernels, std::regex("^descent: program [0-9a-f]{32} on cpu\n"
                                              "[0-9]+ nodes in [0-9]+ kernels")));
  CHECK(contains(kernels, "matmul"));
  CHECK(contains(kernels, "not fused: "));
  CHECK(explained.substr(0, explained.find('\n')) == kernels.substr(0, kernels.find('\n')));
  std::smatch shown;
  REQUIRE(std::regex_search(kernels, shown, std::regex("nodes in ([0-9]+) kernels")));
  CHECK(contains(explained, fmt::format(", {} kernels\n", shown[1].str())));
  const auto last = fmt::format("\n{:>3}  ", std::stoi(shown[1]) - 1);  // of the table
  CHECK(contains(kernels, last));
  for (const char* pass : {"rules", "rangeify", "fuse-rows", "memory-plan", "math", "cache-rows",
                           "emit", "math              exp", "  + ", "  - "})
    CHECK(contains(explained, pass));

  // To look changes nothing: neither what is compiled, nor what the function computes.
  CHECK(descent.step.kernels() == kernels);
  CHECK(descent.step.plan_count() == 1);
  Descent other;
  CHECK(other.step(x).item() == first);
  CHECK(other.step(x).item() == descent.step(x).item());
}

TEST_CASE("inspect: where no kernels are made there are none to see") {
  const DeviceScope interpreter("interpreter");
  Descent descent;
  descent.step(full({5, 4}, 0.3));
  CHECK(contains(error_of([&] { descent.step.kernels(); }),
                 "device \"interpreter\" makes no kernels"));
}
