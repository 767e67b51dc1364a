// anneal explain of functions that are made of ops.
#include <fstream>
#include <regex>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli_runner.h"
#include "ir/print.h"

using namespace anneal;

namespace {

// The public functions of a header that give tensors.
std::set<std::string> functions_of(const std::string& header) {
  std::ifstream file("include/anneal/" + header);  // tests run in the root of the project
  REQUIRE(file);
  const std::regex declaration("^(?:Tensor|Sorted|std::vector<Tensor>) ([a-z][a-z0-9_]*)\\(.*");
  std::set<std::string> names;
  std::smatch match;
  for (std::string line; std::getline(file, line);)
    if (std::regex_match(line, match, declaration)) names.insert(match[1]);
  return names;
}

// What holds values and computes none.
const std::set<std::string> kNotComputed{
    "zeros", "ones",      "full",       "zeros_like", "ones_like", "full_like", "from_dim",
    "input", "parameter", "from_bytes", "from_data",  "tensor",    "evaluate"};

}  // namespace

TEST_CASE("cli explain: every public function is explained by what it becomes") {
  std::set<std::string> names = functions_of("functional.h");
  REQUIRE(names.contains("softmax"));
  names.merge(functions_of("tensor.h"));
  REQUIRE(names.contains("matmul"));
  for (const std::string& name : names) {
    if (kNotComputed.contains(name)) continue;
    INFO(name << " needs a row in cli/inspect/functions.cc");
    const Run run = anneal_run(fmt::format("explain {} --json", name));
    REQUIRE(run.code == 0);
    const Json shown = Json::parse(run.output);
    if (shown.contains("op")) continue;  // it is one
    CHECK(shown["function"] == name);
    CHECK(std::holds_alternative<std::vector<NodeRef>>(
        parse(shown["value"]["graph"].get<std::string>())));
    CHECK_FALSE(shown["value"]["kernels"].empty());
  }
}

TEST_CASE(
    "cli explain: softmax is an exponential over its sum, in one kernel, and so is its gradient") {
  const Json shown = json_of("explain softmax");
  CHECK(shown["inputs"] == Json::parse("[\"x f32[2, 3]\"]"));
  CHECK(shown["result"] == "f32[2, 3]");
  for (const char* op : {"reduce_max", "reduce_sum", "exp", "div"})
    CHECK(contains(shown["value"]["graph"], fmt::format(" = {} ", op)));
  CHECK(shown["value"]["kernels"].size() == 1);
  CHECK(shown["gradient"]["kernels"].size() == 1);
  CHECK_FALSE(shown["gradient"]["hits"].empty());
  CHECK(shown["gradient_rules"] == Json::parse("[\"y * (g - sum(y * g, n.at(0), true))\"]"));
  CHECK(json_of("explain square")["gradient_rules"].empty());

  const Run text = anneal_run("explain softmax");
  CHECK(text.code == 0);
  for (const char* part :
       {"softmax: softmax(x)\n", "what it becomes\n", "its gradient, for g that of the result\n",
        "after the rules\n", "1 kernel: softmax\n"})
    CHECK(contains(text.output, part));
  CHECK(contains(anneal_run("explain argmax").output, "no gradient flows through it\n"));
}
