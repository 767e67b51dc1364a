// Whatever may be left out is left out, in turn, by its name in the tables: passes of every stage,
// families, choices of plans, sets of rules and rules. Each where it has something to do, which a
// run with everything tells. A new pass is covered as soon as it is in a table; one that no program
// here needs fails the test.
//
//   ANNEAL_FUZZ_GRAPHS=400 ANNEAL_FUZZ_SEED=7 build/anneal_tests -tc="left out:*"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "codegen/pipeline.h"
#include "graph_runs.h"
#include "interpreted_gpu.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "random_graph.h"
#include "requests_scope.h"
#include "rewrite/pass_trace.h"
#include "rewrite/rewriter.h"
#include "target/target.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

using Roots = std::vector<NodeRef>;

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

uint64_t graphs() { return number_from("ANNEAL_FUZZ_GRAPHS", 40); }

// ---- programs: random ones, and those that passes are made for

// Each input has a slot of its own, as where a program is captured.
Roots numbered(const Roots& roots) {
  NodeMap<NodeRef> images;
  int64_t slots = 0;
  for (NodeRef node : topological_order(roots)) {
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(*images.find(source));
    images[node] = node->op == Op::Buffer
                       ? make_buffer(node->arg.symbol->text(), slots++, node->dtype, sources)
                       : with_sources(node, sources);
  }
  Roots results;
  for (NodeRef root : roots) results.push_back(*images.find(root));
  return results;
}

Roots with_gradients(const Tensor& value, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> results = grad(sum(value * 0.5), inputs);
  Roots roots{value.node()};
  for (const Tensor& result : results) roots.push_back(result.node());
  // Marks of gradients are for whoever captures a program.
  return Rewriter({&kStripRules}).run(numbered(roots));
}

Roots attention() {
  const Tensor q = input("q", {24, 8}), k = input("k", {24, 8}), v = input("v", {24, 8});
  const Tensor rows = arange(24, DType::I32).reshape({24, 1}), columns = arange(24, DType::I32);
  const Tensor scores = where(columns <= rows, matmul(q, transpose(k)) * 0.25, -INFINITY);
  return with_gradients(matmul(softmax(scores), v), {q, k, v});
}

Roots perceptron() {
  const Tensor x = input("x", {16, 24}), up = input("up", {24, 40}), down = input("down", {40, 8});
  return with_gradients(matmul(gelu(matmul(x, up) * 0.125), down), {up, down});
}

Roots embedding() {
  const Tensor table = input("table", {10, 4}), token = input("token", {80}, DType::I32);
  return with_gradients(index_select(table, token), {table});
}

Roots entropy() {
  const Tensor logits = input("logits", {20, 30}), label = input("label", {20}, DType::I32);
  return with_gradients(cross_entropy(logits * 0.25, label % 30), {logits});
}

Roots convolution() {
  const Tensor x = input("x", {2, 3, 9, 9}), weight = input("weight", {4, 3, 3, 3});
  return with_gradients(conv2d(x, weight, {}, {.stride = {2}, .padding = {1}}), {x, weight});
}

Roots norms() {
  const Tensor x = input("x", {12, 40});
  return with_gradients(layer_norm(x), {x});
}

Roots long_rows() {
  const Tensor x = input("x", {2, 5120});
  return with_gradients(softmax(x), {x});
}

Roots turned() {
  const Tensor x = input("x", {6, 10});
  return with_gradients(transpose(x).reshape({60}) * 2, {x});
}

struct NamedProgram {
  std::string name;
  std::function<Roots()> build;
  bool f64 = false;
};

std::vector<NamedProgram> programs() {
  std::vector<NamedProgram> all{{"attention", attention},     {"perceptron", perceptron},
                                {"embedding", embedding},     {"entropy", entropy},
                                {"convolution", convolution}, {"norms", norms},
                                {"long rows", long_rows},     {"turned", turned}};
  const uint64_t first = number_from("ANNEAL_FUZZ_SEED", 0);
  for (uint64_t seed = first; seed < first + graphs(); ++seed)
    all.push_back({fmt::format("random graph {}", seed),
                   [seed] { return random_graph(seed, {.f64 = false, .max_elements = 300}); }});
  return all;
}

// ---- ways to run them, each compared with the interpreter

struct Way {
  std::string name;
  std::function<std::string(const GraphRuns& runs)> check;
};

// What is for many elements is for few.
Toggle eagerly(int64_t most_operations = 0) { return {{}, 4096, most_operations}; }

enum class Tiles : uint8_t { No, Yes };

Way on_gpu(const std::string& target, Tiles tiles) {
  Capabilities capabilities =
      capabilities_of(*find_target(target), {.precision = MatmulPrecision::High});
  capabilities.large_elements = 1 << 10;
  capabilities.least_matrix_work = 0;
  capabilities.tiles = tiles == Tiles::Yes;
  return {target + (capabilities.tiles ? "" : " without tiles"),
          [device = std::make_shared<InterpretedGpu>(capabilities)](const GraphRuns& runs) {
            return runs.check_on(*device, eagerly());
          }};
}

std::vector<Way> ways() {
  return {{"cpu", [](const GraphRuns& runs) { return runs.check_programs(eagerly(), eagerly()); }},
          {"cpu, short kernels",
           [](const GraphRuns& runs) { return runs.check_programs(eagerly(24), eagerly()); }},
          on_gpu("webgpu-minimum", Tiles::Yes),
          on_gpu("webgpu-h200", Tiles::Yes),
          on_gpu("webgpu-h200", Tiles::No)};
}

// What is wrong, and the names of passes that changed something and of rules that fired.
struct Outcome {
  std::string failure;
  std::set<std::string, std::less<>> busy = {};
};

Outcome run(const NamedProgram& program, const Way& way) {
  Graph graph;
  GraphScope scope(graph);
  const PassTrace trace;
  Outcome outcome{way.check(GraphRuns(program.build()))};
  if (!outcome.failure.empty())
    outcome.failure = fmt::format("{} on {}: {}", program.name, way.name, outcome.failure);
  for (const PassTrace::Row& row : trace.rows())
    if (row.changes > 0) outcome.busy.emplace(row.pass);
  for (const RewriteLog::Hit& hit : trace.hits()) {
    outcome.busy.emplace(hit.set);
    outcome.busy.insert(fmt::format("{}/{}", hit.set, hit.rule));
  }
  return outcome;
}

// ---- what has something to do, and where

struct Place {
  const NamedProgram* program;
  const Way* way;
};
using Places = std::map<std::string, std::vector<Place>, std::less<>>;

Places places_of(const std::vector<NamedProgram>& programs, const std::vector<Way>& ways) {
  Places places;
  for (const NamedProgram& program : programs)
    for (const Way& way : ways) {
      const Outcome outcome = run(program, way);
      CHECK_MESSAGE(outcome.failure.empty(), outcome.failure);
      for (const std::string& name : outcome.busy) places[name].push_back({&program, &way});
    }
  for (const PassRow& row : pipeline())
    if (const auto found = places.find(row.name); !row.family.empty() && found != places.end())
      for (const Place& place : found->second) places[std::string(row.family)].push_back(place);
  return places;
}

// Evenly among them, so that not all are of the first program.
std::vector<Place> some_of(const std::vector<Place>& places, size_t most) {
  if (places.size() <= most) return places;
  std::vector<Place> some;
  for (size_t i = 0; i < most; ++i) some.push_back(places[i * places.size() / most]);
  return some;
}

// These have something to do only in programs that are too large here; each has a test of its own.
const std::map<std::string_view, std::string_view> kElsewhere{
    {"winograd", "winograd_test.cc"},       // results are close, not equal
    {"index-width", "gpu_passes_test.cc"},  // takes 2^31 elements
};

}  // namespace

TEST_CASE("left out: every pass, choice and rule in turn, where it has something to do") {
  const std::vector<NamedProgram> all = programs();
  const std::vector<Way> on = ways();
  Places places = places_of(all, on);
  for (const PassRow& row : pipeline()) {
    if (row.required || row.stage == "plan" || kElsewhere.contains(row.name)) continue;
    CHECK_MESSAGE(places.contains(row.name),
                  row.stage << ", " << row.name << " has nothing to do in any program");
    for (std::string_view rule : row.rules)
      CHECK_MESSAGE(places.contains(fmt::format("{}/{}", row.name, rule)),
                    row.name << "/" << rule << " fires in no program");
  }
  // Choices and parts of passes leave no trace: they matter nearly everywhere.
  std::vector<Place> everywhere;
  for (const Way& way : on)
    for (size_t i = 0; i < all.size(); i += 5) everywhere.push_back({&all[i], &way});

  const size_t most = std::max<size_t>(3, graphs() / 12);
  int runs = 0;
  for (const std::string& name : names_to_disable()) {
    const auto found = places.find(name);
    const bool is_rule = name.find('/') != std::string::npos;
    if (found == places.end() && is_rule) continue;  // simplify_test.cc has each of them
    const std::vector<Place> here =
        found == places.end() ? everywhere : some_of(found->second, most);
    for (const Place& place : here) {
      PassRequests requests;
      requests.disabled = {name};
      requests.verify = true;
      const RequestsScope scope(std::move(requests));
      const Outcome outcome = run(*place.program, *place.way);
      CHECK_MESSAGE(outcome.failure.empty(), "without " << name << ": " << outcome.failure);
      CHECK_MESSAGE(!outcome.busy.contains(name), name << " is not left out");
      ++runs;
    }
  }
  MESSAGE(runs << " runs without something");
}

TEST_CASE("left out: every name that code asks for is in a table") {
  const std::vector<std::string> names = names_to_disable();
  const std::regex asked("(?:is_disabled|enabled)\\(\"([^\"]+)\"");
  int found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(ANNEAL_SOURCE_DIR) + "/src")) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator each(text.begin(), text.end(), asked), end; each != end; ++each) {
      CHECK_MESSAGE(std::ranges::count(names, (*each)[1].str()) == 1,
                    entry.path().filename().string() << " asks for " << (*each)[1].str());
      ++found;
    }
  }
  CHECK(found > 20);
}
