// The generator of random programs and what is expected of them: every op is reached, programs are
// deep, values are finite and error bounds are tight enough to see a mistake.
#include "random_graph.h"

#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "graph_check.h"
#include "graph_shrink.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "value_info.h"

using namespace anneal;

namespace {

// The program with every float in f64: no rounding to a narrower dtype happens anywhere. Contents
// are those of `buffers`.
std::vector<NodeRef> widened(std::span<const NodeRef> roots, std::map<NodeRef, NodeRef>& buffers) {
  NodeMap<NodeRef> wide;
  for (NodeRef node : topological_order(roots)) {
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(*wide.find(source));
    const DType dtype = is_float(node->dtype) ? DType::F64 : node->dtype;
    if (node->op == Op::Bitcast) sources[0] = make_cast(sources[0], node->source(0)->dtype);
    if (node->op == Op::Cast && is_float(dtype) && sources[0]->dtype == dtype) {
      wide[node] = sources[0];
    } else if (node->op == Op::Assign) {
      wide[node] = sources[1];
    } else {
      const Arg arg =
          node->is_const() ? Arg(Scalar::of(dtype, node->scalar().as_double())) : node->arg;
      const bool is_whole = node->is_const() && !is_float(dtype);
      wide[node] = current_graph().make(node->op, dtype, sources, is_whole ? node->arg : arg);
    }
    if (node->op == Op::Buffer) buffers[wide[node]] = node;
  }
  std::vector<NodeRef> results;
  for (NodeRef root : roots) results.push_back(*wide.find(root));
  return results;
}

// As an f64 of the same shape; what is no float stays.
Value as_f64(const Value& value) {
  if (!is_float(value.dtype)) return value;
  Value wide{DType::F64, value.shape, {}};
  for (int64_t i = 0; i < value.size(); ++i)
    wide.payload.push_back(Scalar::of(DType::F64, value.as_double(i)).bits());
  return wide;
}

}  // namespace

TEST_CASE("random graph: every op and dtype is reached, programs are deep, symbolic and assign") {
  OpSet reached;
  std::array<bool, kDTypeCount> dtypes{};
  int deep = 0, symbolic = 0, assigning = 0, shared = 0;
  constexpr int kGraphs = 300;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = random_graph(seed);
    CHECK(verify(roots, kProgramStage) == "");
    deep += depth(roots) >= 20;
    symbolic += size_bindings(roots).size() > 1;
    assigning += std::ranges::any_of(roots, [](NodeRef n) { return n->op == Op::Assign; });
    shared += roots.size() > 1;
    for (NodeRef node : topological_order(roots)) {
      reached.add(node->op);
      dtypes[static_cast<size_t>(node->dtype)] = true;
    }
    CHECK(std::get<std::vector<NodeRef>>(parse(print(roots))) == roots);
  }
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (kMarks.contains(op)) continue;  // gradients are taken by then
    CHECK_MESSAGE(reached.contains(op), "no program has " << name(op));
  }
  for (DType dtype : kAllDTypes) CHECK_MESSAGE(dtypes[static_cast<size_t>(dtype)], name(dtype));
  CHECK(deep > kGraphs / 2);
  CHECK(symbolic > kGraphs / 10);
  CHECK(assigning > kGraphs / 5);
  CHECK(shared > kGraphs / 2);
}

TEST_CASE("random graph: values are finite and as the infos say, and bounds are tight") {
  size_t elements = 0, exact = 0, vague = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = random_graph(seed);
    ValueInfos infos;
    for (const SizeBinding& binding : size_bindings(roots)) {
      GraphContents contents(binding);
      const Expectation expected = expect(roots, contents);
      for (size_t i = 0; i < roots.size(); ++i) {
        const ValueInfo info = infos[roots[i]];
        const Value& value = expected.values[i];
        CHECK(info.tame);
        double scale = 0;
        bool inside = true, finite = true;
        for (int64_t k = 0; k < value.size(); ++k) {
          const double x = value.as_double(k), slack = 0.3 * std::fabs(x) + 1e-2;
          inside &= x >= info.low - slack && x <= info.high + slack;
          finite &= std::isfinite(x);
          scale = std::max(scale, std::fabs(x));
        }
        CHECK_MESSAGE(inside, "outside " << info.low << ".." << info.high << "\n" << print(roots));
        CHECK_MESSAGE(finite, print(roots));
        elements += static_cast<size_t>(value.size());
        if (expected.errors[i].payload.empty()) exact += static_cast<size_t>(value.size());
        for (int64_t k = 0; k < expected.errors[i].size(); ++k)
          vague += !(expected.errors[i].as_double(k) <= 0.25 * std::max(scale, 1e-3));
      }
    }
  }
  MESSAGE(elements << " elements, " << exact << " exact, " << vague << " vague");
  CHECK(exact > elements / 5);
  CHECK(vague < elements / 10);  // fp8 has few bits
}

TEST_CASE("random graph: without any rounding the values are within the bounds") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = random_graph(seed);
    std::map<NodeRef, NodeRef> buffers;
    const std::vector<NodeRef> wide = widened(roots, buffers);
    for (const SizeBinding& binding : size_bindings(roots)) {
      GraphContents contents(binding);
      const Expectation expected = expect(roots, contents);
      std::map<NodeRef, Value> values;
      Environment environment = contents.environment();
      environment.buffer = [&](NodeRef buffer) {
        return &(values[buffer] = as_f64(contents.value(buffers.at(buffer))));
      };
      const std::vector<Value> got = interpret(wide, environment);
      for (size_t i = 0; i < roots.size(); ++i) {
        const std::string text = difference(got[i], as_f64(expected.values[i]), expected.errors[i]);
        CHECK_MESSAGE(text.empty(), "seed " << seed << ", root " << i << " " << text << "\n"
                                            << print(roots[i]));
      }
    }
  }
}

TEST_CASE("random graph: a failing program shrinks to what fails") {
  // Pretend that a sum of an exponential is wrong.
  auto failure = [](std::span<const NodeRef> roots) -> std::string {
    for (NodeRef node : topological_order(roots))
      if (node->op == Op::ReduceSum)
        for (NodeRef below : topological_order(std::span(&node, 1)))
          if (below->op == Op::Exp) return "wrong";
    return "";
  };
  int shrunk = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = random_graph(seed);
    if (failure(roots).empty()) continue;
    const ShrunkGraph result = shrink_graph(roots, failure);
    CHECK(failure(result.roots) == "wrong");
    size_t nodes = 0;
    for (NodeRef node : topological_order(result.roots)) nodes += node->dtype != DType::Index;
    CHECK_MESSAGE(nodes <= 6, print(result.roots));
    CHECK(verify(result.roots, kProgramStage) == "");
    ++shrunk;
  }
  CHECK(shrunk > 5);
}
