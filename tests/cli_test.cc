// Runs the built program as a user does and reads what it prints.
// Must not repeat the program's tables: expectations come from the library's own.
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "anneal_version.h"
#include "cli_runner.h"
#include "codegen/pipeline.h"
#include "ir/print.h"
#include "models/program.h"
#include "transform/derivative.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

int64_t count_of(const Json& explained, std::string_view set) {
  int64_t count = 0;
  for (const Json& hit : explained["hits"])
    if (hit["set"] == set) count += hit["count"].get<int64_t>();
  return count;
}

}  // namespace

TEST_CASE("cli: help and version") {
  const Run bare = anneal_run("");
  CHECK(bare.code == 0);
  for (const char* command :
       {"train", "run", "sample", "graph", "explain", "kernels", "bench", "doctor", "help"})
    CHECK(contains(bare.output, fmt::format("\n  {} ", command)));
  for (const models::ProgramRow& row : models::programs()) CHECK(contains(bare.output, row.name));
  CHECK(anneal_run("help").output == bare.output);
  CHECK(anneal_run("--help").output == bare.output);
  CHECK(contains(anneal_run("help graph").output, "--forward"));
  CHECK(anneal_run("graph --help").output == anneal_run("help graph").output);

  const Run version = anneal_run("--version");
  CHECK(version.code == 0);
  CHECK(version.output == "anneal " ANNEAL_VERSION "\n");

  const Run licenses = anneal_run("--licenses");
  CHECK(licenses.code == 0);
  for (const char* part : {"the anneal authors", "fmt\n==", "CLI11\n==", "nlohmann json\n==",
                           "LLVM\n==", "zlib\n==", "zstd\n==", "libstdc++ and libgcc\n=="})
    CHECK_MESSAGE(contains(licenses.output, part), part);
}

TEST_CASE("cli: exit codes and what the errors say") {
  struct Row {
    const char* arguments;
    int code;
    const char* says;
  };
  for (const Row& row : {
           Row{"grpah mlp", 2, "did you mean graph?"},
           Row{"nothing-like-it", 2, "there are: train, run, sample, graph"},
           Row{"graph mlp --nonsense", 2, "--nonsense"},
           Row{"graph mlp --forwrad", 2, "graph has no option --forwrad"},
           Row{"train mlp --step 4", 2, "did you mean --steps"},
           Row{"--nonsense", 2, "--nonsense"},
           Row{"graph", 2, "PROGRAM is required"},
           Row{"graph mlp --forward --step", 2, "--forward"},
           Row{"explain mlp --events x", 2, "--events must be a whole number from 0 to"},
           Row{"explain mlp --events -1", 2, "--events must be from 0 to 1000000, got -1"},
           Row{"help nothing", 2, "there is no command 'nothing'"},
           Row{"graph mpl", 2,
               "did you mean mlp? there are: mlp, conv, dynmlp, nanogpt, attention"},
           Row{"explain ex", 2, "did you mean exp"},
           Row{"explain sotfmax", 2, "did you mean softmax? there are: mlp, conv, "},
           Row{"explain nothing-like-it", 2, "there is no op, function or program"},
           Row{"explain mlp --disable identity", 2, "there is no rule set or rule 'identity'"},
           Row{"train mlp --seed 9223372036854775808", 2,
               "--seed must be a whole number from 0 to 9223372036854775807"},
           Row{"train mlp --seed -1", 2, "--seed must be from 0 to 9223372036854775807, got -1"},
           Row{"kernels", 2, "PROGRAM is required"},
           Row{"kernels mlp --forward --step", 2, "--forward"},
           Row{"kernels convv", 2, "did you mean conv?"},
           Row{"kernels mlp --kernel 1000", 2, "they are numbered from 0 to"},
           Row{"kernels mlp --kernel -1", 2, "--kernel"},
           Row{"kernels mlp --device cup", 2,
               "did you mean cpu? there are: cpu, webgpu, interpreter"},
           Row{"kernels mlp --device interpreter", 2, "makes no kernels"},
           Row{"bench gemm --device nothing", 2, "there is no device 'nothing'"},
           Row{"kernels mlp --source assm", 2, "did you mean asm?"},
           Row{"doctor mlp", 2, "doctor does not take 'mlp'"},
           Row{"bench nothing", 2, "there are: gemm"},
           Row{"bench gem", 2, "did you mean gemm? there are: gemm, conv, "},
           Row{"bench gemm --threads 0", 2, "--threads must be from 1 to 1024, got 0"},
           Row{"bench gemm --threads 1,x", 2,
               "--threads must be a whole number from 1 to 1024, got x"},
           Row{"bench gemm --case nothing", 2, "no case of gemm contains 'nothing'"},
       }) {
    INFO(row.arguments);
    const Run run = with_errors(row.arguments);
    CHECK(run.code == row.code);
    CHECK(contains(run.output, "error: "));
    CHECK(contains(run.output, "hint: "));
    CHECK_MESSAGE(contains(run.output, row.says), run.output);
    CHECK(anneal_run(std::string(row.arguments) + " 2>/dev/null").output == "");
  }
}

TEST_CASE("cli: a reader that goes away is no failure") {
  // More than a pipe holds, so that writing meets the closed end.
  const std::string graph = fmt::format("'{}' graph attention --json", program_path());
  REQUIRE(shell(graph).output.size() > 100'000);
  const Run run =
      shell(fmt::format("bash -c \"{} | head -c 10; echo \\${{PIPESTATUS[0]}}\" 2>&1", graph));
  CHECK(run.output == "{\"program\"0\n");
}

TEST_CASE("cli: colours are for terminals") {
  CHECK_FALSE(contains(anneal_run("graph mlp").output, "\x1b"));
  CHECK_FALSE(contains(anneal_run("help").output, "\x1b"));
}

TEST_CASE("cli: graph prints text that parses to the same program") {
  for (const models::ProgramRow& row : models::programs()) {
    for (const bool forward : {false, true}) {
      const std::string name(row.name);
      INFO(name);
      const Run run = anneal_run("graph " + name + (forward ? " --forward" : " --step"));
      REQUIRE(run.code == 0);
      const auto parsed = parse(run.output);
      REQUIRE(std::holds_alternative<std::vector<NodeRef>>(parsed));

      // Phases and origins are comments, so that the nodes come out the same.
      const models::Program program = row.build();
      std::vector<NodeRef> roots{program.loss.node()};
      if (!forward)
        for (const Tensor& update : program.updates) roots.push_back(update.node());
      CHECK(std::get<std::vector<NodeRef>>(parsed) == roots);
      CHECK(contains(run.output, "// forward   "));
      CHECK(contains(run.output, "// backward") == !forward);
      CHECK(contains(run.output, "// update") == !forward);
    }
  }
  CHECK(anneal_run("graph mlp").output == anneal_run("graph mlp --step").output);
}

TEST_CASE("cli: graph --json names every node, its phase and its origin") {
  for (const models::ProgramRow& row : models::programs()) {
    const Json graph = json_of("graph " + std::string(row.name) + " --step");
    CHECK(graph["program"] == row.name);
    CHECK(graph["scope"] == "step");
    CHECK(graph["counts"]["nodes"] == graph["nodes"].size());
    std::set<std::string> known;
    std::map<std::string, int64_t> phases, ops;
    for (const Json& node : graph["nodes"]) {
      for (const Json& source : node["sources"]) {
        const std::string name = source;
        if (name.starts_with('%')) CHECK(known.count(name) == 1);
      }
      CHECK(parse_op(node["op"].get<std::string>()));
      if (node["op"] != "variable")  // which no call computes
        CHECK(node["origin"]["line"].get<int>() > 0);
      CHECK(contains(node["text"], node["op"].get<std::string>()));
      known.insert(node["id"]);
      ++phases[node["phase"]];
      ++ops[node["op"]];
    }
    CHECK(known.size() == graph["nodes"].size());
    CHECK(phases.size() == 3);
    CHECK(graph["counts"]["phases"] == Json(phases));
    CHECK(graph["counts"]["ops"] == Json(ops));
  }
  const Json forward = json_of("graph mlp --forward");
  CHECK(forward["scope"] == "forward");
  for (const Json& node : forward["nodes"]) CHECK(node["phase"] == "forward");
}

TEST_CASE("cli: every op can be explained, with the rules that run") {
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const std::string command = fmt::format("explain {}", name(op));
    INFO(command);
    const Run run = anneal_run(command);
    CHECK(run.code == 0);
    CHECK(contains(run.output, info(op).meaning));
    const Json explained = json_of(command);
    for (const auto& [key, rule] :
         {std::pair("gradient", gradient_rule(op)), std::pair("forward", forward_rule(op))}) {
      if (rule) {
        CHECK(explained[key] == rule->text);
        CHECK(contains(run.output, rule->text));
      } else {
        CHECK(explained[key].is_null());
      }
    }
    size_t rules = 0;
    for (const RuleSet* set : rule_sets())
      for (const Rule& rule : set->rules())
        if (rule.pattern.matches_any_op() || rule.pattern.ops().contains(op)) ++rules;
    CHECK(explained["rules"].size() == rules);
    for (const char* when : {"before", "after"}) {
      const auto parsed = parse(explained["example"][when].get<std::string>());
      CHECK(std::holds_alternative<std::vector<NodeRef>>(parsed));
    }
    if (explained["example"]["shows"] == "op")
      CHECK(contains(explained["example"]["before"], name(op)));
  }
}

TEST_CASE("cli: explain of a program lists passes and the rules that fired in them") {
  const Json all = json_of("explain mlp");
  CHECK(all["nodes_after"].get<int>() < all["nodes_before"].get<int>());
  std::map<std::string, int64_t> hits;  // by rule
  std::map<std::string, Json> passes;
  for (const Json& pass : all["passes"]) {
    passes[pass["pass"]] = pass;
    for (const Json& hit : pass["hits"])
      hits[fmt::format("{}/{}", hit["set"].get<std::string>(), hit["rule"].get<std::string>())] +=
          hit["count"].get<int64_t>();
  }
  CHECK(hits.size() == all["hits"].size());
  for (const Json& hit : all["hits"])
    CHECK(
        hits[fmt::format("{}/{}", hit["set"].get<std::string>(), hit["rule"].get<std::string>())] ==
        hit["count"]);
  // Of the graph, the schedule and the kernels.
  CHECK(passes["rules"]["after"]["nodes"] < passes["rules"]["before"]["nodes"]);
  CHECK(passes["rangeify"]["after"]["fragments"] > 0);
  CHECK(passes["fuse-rows"]["changes"] == 1);
  CHECK(!passes["math"]["hits"].empty());
  CHECK(passes["merge-axes"]["after"]["axes"] < passes["merge-axes"]["before"]["axes"]);
  for (const Json& event : all["events"]) CHECK(event["before"] != event["after"]);
  auto most_events = [](const Json& explained) {
    std::map<std::string, size_t> count;
    size_t most = 0;
    for (const Json& event : explained["events"]) most = std::max(most, ++count[event["pass"]]);
    return most;
  };
  CHECK(most_events(all) == 1);
  CHECK(most_events(json_of("explain mlp --events 3")) == 3);
  CHECK(json_of("explain mlp --events 0")["events"].empty());
}

TEST_CASE("cli: explain --disable leaves rules out") {
  const Json all = json_of("explain mlp");
  CHECK(count_of(all, "movement") > 0);
  const Json without_set = json_of("explain mlp --disable movement");
  CHECK(count_of(without_set, "movement") == 0);
  CHECK(without_set["nodes_after"] != all["nodes_after"]);
  const Json without_two =
      json_of("explain mlp --disable movement/permute-permute --disable order");
  CHECK(count_of(without_two, "order") == 0);
  CHECK(count_of(without_two, "movement") < count_of(all, "movement"));
  CHECK(without_two["disabled"].size() == 2);
}
