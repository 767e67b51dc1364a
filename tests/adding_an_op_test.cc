// docs/adding-an-op.md, followed: each of its places has something for every op that needs it, and
// the lines that the page shows are in the files it names.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/infer.h"
#include "kernel/body/math_rules.h"
#include "runtime/cpu/code_memory.h"
#include "tensor/named_gradient.h"
#include "transform/derivative.h"

using namespace anneal;

namespace {

std::vector<Op> tensor_ops() {
  std::vector<Op> ops;
  for (int i = 0; i < kTensorOpCount; ++i) ops.push_back(static_cast<Op>(i));
  return ops;
}

std::vector<Op> functions() {
  std::vector<Op> ops = tensor_ops();
  std::erase_if(ops, [](Op op) { return !is_libm_function(op); });
  return ops;
}

// Whether derivatives flow through it: floats come in, and floats go out.
bool carries_gradients(Op op) {
  const OpInfo& row = info(op);
  return row.sources > 0 && (row.accepts & kFloatClass) && row.type != TypeRule::Bool &&
         row.type != TypeRule::Index;
}

std::string read_source(const std::string& path) {
  std::ifstream file(std::string(ANNEAL_SOURCE_DIR) + "/" + path);
  REQUIRE_MESSAGE(file.good(), path << " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// One space for several: tables are aligned.
std::string squeezed(const std::string& text) {
  static const std::regex spaces(" +"), ends("^ | $");
  return std::regex_replace(std::regex_replace(text, spaces, " "), ends, "");
}

struct BufferRef {
  std::string title;
  std::vector<std::string> files, lines;
};

// The numbered sections of the page: the files in their titles and the lines of their fences.
std::vector<BufferRef> places_of_page() {
  std::istringstream page(read_source("docs/adding-an-op.md"));
  std::vector<BufferRef> places;
  static const std::regex numbered("## \\d+\\. .*"), quoted("`([^`]+)`");
  bool in_fence = false, in_place = false;
  for (std::string line; std::getline(page, line);) {
    if (!in_fence && line.starts_with("## ")) {
      in_place = std::regex_match(line, numbered);
      if (!in_place) continue;
      BufferRef place{line, {}, {}};
      for (std::sregex_iterator at(line.begin(), line.end(), quoted), end; at != end; ++at)
        place.files.push_back((*at)[1]);
      places.push_back(place);
    } else if (line.starts_with("```")) {
      in_fence = !in_fence;
    } else if (in_fence && in_place) {
      places.back().lines.push_back(squeezed(line));
    }
  }
  return places;
}

}  // namespace

TEST_CASE("adding an op: the page shows lines that are there") {
  const std::vector<BufferRef> places = places_of_page();
  CHECK(places.size() == 10);
  for (const BufferRef& place : places) {
    CAPTURE(place.title);
    CHECK(!place.files.empty());
    CHECK(!place.lines.empty());
    std::string text;
    for (const std::string& file : place.files) text += squeezed(read_source(file));
    for (const std::string& line : place.lines) {
      CAPTURE(line);
      CHECK(text.find(line) != std::string::npos);
    }
  }
}

TEST_CASE("adding an op: every row says what an op costs") {
  for (Op op : tensor_ops()) {
    CAPTURE(name(op));
    CHECK(!info(op).meaning.empty());
    CHECK(info(op).cost > 0);
    CHECK(info(op).code >= 0);
    // More than an addition, or the scheduler would compute it again everywhere.
    if (is_libm_function(op)) CHECK(info(op).cost > info(Op::Add).cost);
    if (is_libm_function(op)) CHECK(info(op).code > info(Op::Add).code);
  }
}

TEST_CASE("adding an op: every op of floats has a gradient and a tangent") {
  for (Op op : tensor_ops()) {
    if (!carries_gradients(op) || op == Op::Bitcast) continue;  // bits have no slope
    CAPTURE(name(op));
    if (op != Op::CustomGrad) CHECK(gradient_rule(op));  // its rule is the name's or the user's
    CHECK(forward_rule(op));
  }
}

TEST_CASE("adding an op: every function has a formula of f32") {
  for (Op op : functions()) {
    Graph graph;
    GraphScope scope(graph);
    NodeRef x = make_buffer("x", 0, DType::F32, {}), y = make_buffer("y", 1, DType::F32, {});
    NodeRef node = info(op).sources == 1 ? make(op, {x}) : make(op, {x, y});
    for (bool f64 : {true, false}) {
      const NodeRef lowered = lower_math({&node, 1}, nullptr, {}, {.f64 = f64})[0];
      for (NodeRef each : topological_order({&lowered, 1})) {
        CAPTURE(name(op));
        CHECK(!is_libm_function(each->op));
        CHECK((f64 || each->dtype != DType::F64));
      }
    }
  }
}

TEST_CASE("adding an op: code may call every function that the table names") {
  for (Op op : functions()) {
    for (const char* suffix : {"", "f"}) {
      CodeImage image;
      image.imports.push_back({std::string(info(op).libm) + suffix, 0});
      CAPTURE(image.imports[0].name);
      CHECK(can_import(image));
    }
  }
  CodeImage image;
  image.imports.push_back({"system", 0});
  CHECK(!can_import(image));
}

TEST_CASE("adding an op: names of gradients have rows, and the text holds their numbers") {
  Graph graph;
  GraphScope scope(graph);
  for (const NamedDerivativeRule& rule : named_gradient_rules()) {
    CAPTURE(rule.name);
    CHECK(named_gradient_rule(rule.name) == &rule);  // no name twice
    CHECK(!rule.text.empty());
  }
  CHECK(!named_gradient_rule("custom"));
  const Tensor x(make_buffer("x", 0, DType::F32, {}));
  for (const std::vector<int64_t>& numbers :
       {std::vector<int64_t>{}, {0}, {1, 2, 30, 4000000000}}) {
    const Tensor marked = with_named_gradient(x * x, "conv", numbers, {x});
    const GradientName name = gradient_name(marked.node());
    CHECK(name.name == "conv");
    CHECK(name.numbers == numbers);
  }
}
